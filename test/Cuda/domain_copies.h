//===- domain_copies.h - Domains on host and device, for tests ----*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_DOMAIN_COPIES_H
#define GENREC_TEST_CUDA_DOMAIN_COPIES_H

#include "device_copy.h"

#include "genrec_rt/abi.h"

#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace genrec::rt::cuda::test {

/// Lengths of lists.
using Lengths = std::vector<int64_t>;

/// A domain on the host with its arrays, which the device gets without a byte more: what reads
/// beyond them is seen.
struct HostDomain {
  std::vector<int64_t> offsets, parent;
  std::vector<uint64_t> identity;
  genrec_domain view = {};

  HostDomain() = default;
  HostDomain(const HostDomain &) = delete;

  void identify(std::mt19937_64 &random) {
    identity.resize(static_cast<size_t>(view.count));
    for (uint64_t &value : identity)
      value = random();
    view.identity = identity.data();
  }
};

inline std::unique_ptr<HostDomain> makeRoot(int64_t count, std::mt19937_64 &random) {
  auto root = std::make_unique<HostDomain>();
  root->view.count = root->view.capacity = root->view.max_length = count;
  root->identify(random);
  return root;
}

inline std::unique_ptr<HostDomain> makeLists(const HostDomain &above, const Lengths &lengths,
                                             std::mt19937_64 &random) {
  auto lists = std::make_unique<HostDomain>();
  lists->offsets = {0};
  for (size_t list = 0; list < lengths.size(); ++list) {
    lists->offsets.push_back(lists->offsets.back() + lengths[list]);
    lists->parent.insert(lists->parent.end(), static_cast<size_t>(lengths[list]),
                         static_cast<int64_t>(list));
    lists->view.max_length = std::max(lists->view.max_length, lengths[list]);
  }
  lists->view.count = lists->view.capacity = lists->offsets.back();
  lists->view.offsets = lists->offsets.data();
  lists->view.parent = lists->parent.data();
  lists->view.parent_domain = &above.view;
  lists->identify(random);
  return lists;
}

/// A domain that a call makes: room for its arrays on the host.
inline std::unique_ptr<HostDomain> makeRoom(int64_t lists, int64_t capacity) {
  auto room = std::make_unique<HostDomain>();
  room->offsets.resize(static_cast<size_t>(lists + 1));
  room->parent.resize(static_cast<size_t>(capacity));
  room->identity.resize(static_cast<size_t>(capacity));
  room->view.capacity = capacity;
  return room;
}

/// A domain in device memory.
class DeviceDomain {
public:
  explicit DeviceDomain(const HostDomain &host, const DeviceDomain *above = nullptr,
                        int64_t capacity = 0)
      : offsets(host.offsets), parent(host.parent), identity(host.identity),
        record(std::vector{describe(host, above, capacity)}) {}
  /// Room for one that a kernel makes.
  DeviceDomain(int64_t lists, int64_t capacity)
      : offsets(Lengths(static_cast<size_t>(lists + 1), -77)),
        parent(Lengths(static_cast<size_t>(capacity), -77)),
        identity(std::vector<uint64_t>(static_cast<size_t>(capacity), 77)),
        record(std::vector{
            genrec_domain{-77, capacity, nullptr, nullptr, nullptr, nullptr, -77, nullptr}}) {}

  genrec_domain *get() const { return record.data(); }
  genrec_domain fetch() const { return record.fetch()[0]; }

  Copy<int64_t> offsets, parent;
  Copy<uint64_t> identity;

private:
  genrec_domain describe(const HostDomain &host, const DeviceDomain *above, int64_t capacity) {
    genrec_domain view = host.view;
    view.capacity = std::max(view.count, capacity);
    view.offsets = view.offsets ? offsets.data() : nullptr;
    view.parent = view.parent ? parent.data() : nullptr;
    view.identity = view.identity ? identity.data() : nullptr;
    view.parent_domain = above ? above->get() : nullptr;
    return view;
  }

  mutable Copy<genrec_domain> record;
};

/// Lists without rows, none at all, one, a giant among short ones, more than a block adds up.
inline std::vector<Lengths> listShapes() {
  std::mt19937_64 random(7);
  Lengths many(4300), some(70);
  for (int64_t &length : many)
    length = static_cast<int64_t>(random() % 3);
  for (int64_t &length : some)
    length = static_cast<int64_t>(random() % 9);
  return {{}, {0}, {0, 0, 0}, {5}, {0, 3, 0, 7, 1, 0}, {0, 1, 1500, 0, 2}, some, many};
}

template <class T> std::vector<T> randomValues(int64_t count, std::mt19937_64 &random) {
  std::vector<T> values(static_cast<size_t>(count));
  for (T &value : values)
    value = static_cast<T>(static_cast<int64_t>(random() % 2001) - 1000);
  return values;
}
/// Numbers whose sums are rounded.
inline std::vector<float> fractions(int64_t count, std::mt19937_64 &random) {
  auto values = randomValues<float>(count, random);
  for (float &value : values)
    value /= 1024.0f * 3;
  return values;
}
/// Numbers that bfloat16 does not hold.
inline std::vector<float> randomFloats(int64_t count, std::mt19937_64 &random) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values)
    value = static_cast<float>(static_cast<int64_t>(random() % 200001) - 100000) / 51200;
  return values;
}

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_DOMAIN_COPIES_H
