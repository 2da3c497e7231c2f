//===- EnumKinds.cpp - enum attributes by name ----------------------------===//

#include "EnumKinds.h"

using namespace mlir;
using namespace genrec;

/// `last` is the value of the enum's last case.
template <typename AttrT, unsigned last> static EnumKind makeKind() {
  using EnumT = decltype(std::declval<AttrT>().getValue());
  return {AttrT::getMnemonic(),
          [](MLIRContext *context, StringRef keyword) -> Attribute {
            std::optional<EnumT> value = symbolizeEnum<EnumT>(keyword);
            return value ? AttrT::get(context, *value) : AttrT();
          },
          [](Attribute attribute) -> std::optional<StringRef> {
            if (auto typed = dyn_cast<AttrT>(attribute))
              return stringifyEnum(typed.getValue());
            return std::nullopt;
          },
          [] { return listKeywords<EnumT>(last); }};
}

#define GENREC_ENUM_KIND(NAME) makeKind<NAME##Attr, getMaxEnumValFor##NAME()>()

ArrayRef<EnumKind> genrec::getEnumKinds() {
  static const EnumKind kinds[] = {
      GENREC_ENUM_KIND(PoolKind),   GENREC_ENUM_KIND(KeepKind),    GENREC_ENUM_KIND(HashKind),
      GENREC_ENUM_KIND(ReduceKind), GENREC_ENUM_KIND(CompareKind), GENREC_ENUM_KIND(ScoreKind),
      GENREC_ENUM_KIND(MetricKind), GENREC_ENUM_KIND(PadSide),
  };
  return kinds;
}

#undef GENREC_ENUM_KIND

const EnumKind *genrec::findEnumKind(StringRef name) {
  for (const EnumKind &kind : getEnumKinds())
    if (kind.name == name)
      return &kind;
  return nullptr;
}
