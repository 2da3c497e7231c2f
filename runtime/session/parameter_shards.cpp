//===- parameter_shards.cpp - Ranks share updates of parameters -----------===//

#include "parameter_shards.h"

#include "genrec_rt/footprint.h"

#include <algorithm>
#include <cmath>

namespace genrec::rt {

ParameterShards::ParameterShards(const genrec_model_desc &model, int32_t ranks)
    : ranks(ranks), send(ranks), receive(ranks) {
  for (int32_t i = 0; i < model.parameter_count; ++i) {
    const genrec_parameter_desc &desc = model.parameters[i];
    Parameter &parameter = parameters.emplace_back();
    parameter.rows = desc.rank > 1 ? desc.shape[0] : 1;
    parameter.width = desc.rank > 0 ? desc.shape[desc.rank - 1] : 1;
    parameter.isTrained = desc.optimizer.kind != GENREC_OPTIMIZER_FROZEN;
  }
  cutRows(model);
  placeValues(model);
}

void ParameterShards::cutRows(const genrec_model_desc &model) {
  // Floats that are updated with a row; in double, as shapes may be too large for any memory.
  std::vector<double> rowFloats;
  double all = 0, before = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const genrec_parameter_desc &desc = model.parameters[i];
    rowFloats.push_back(parameters[i].isTrained
                            ? static_cast<double>(parameters[i].width) * (1 + desc.optimizer.states)
                            : 0);
    all += rowFloats[i] * static_cast<double>(parameters[i].rows);
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    Parameter &parameter = parameters[i];
    auto rows = static_cast<double>(parameter.rows);
    for (int32_t rank = 0; rank < ranks; ++rank) {
      double begin = all * rank / ranks - before;
      double row = rowFloats[i] > 0 ? std::round(begin / rowFloats[i]) : rank == 0 ? 0 : rows;
      parameter.bounds.push_back(static_cast<int64_t>(std::clamp(row, 0.0, rows)));
    }
    parameter.bounds.push_back(parameter.rows);
    before += rowFloats[i] * rows;
  }
}

void ParameterShards::placeValues(const genrec_model_desc &model) {
  auto place = [&](bool trained) {
    for (size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].isTrained == trained) {
        parameters[i].start = floats;
        Size size = Size(parameters[i].rows) * parameters[i].width * int64_t(sizeof(float));
        size.value([&] { return std::string("parameter '") + model.parameters[i].name + "'"; });
        floats += parameterFloats(parameters[i].rows * parameters[i].width);
      }
  };
  place(/*trained=*/true);
  int64_t trainedFloats = floats;
  for (int32_t rank = 0; rank <= ranks; ++rank) {
    // The first row of this rank or a later one.
    int64_t cut = trainedFloats;
    for (size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].isTrained && parameters[i].bounds[rank] < parameters[i].rows) {
        cut = parameters[i].start + parameters[i].bounds[rank] * parameters[i].width;
        break;
      }
    cuts.push_back(cut);
  }
  place(/*trained=*/false);
}

int64_t ParameterShards::gather(Communicator &comm, float *block) {
  int32_t self = comm.getRank();
  int64_t received = 0;
  auto bytesOf = [&](int32_t rank) {
    return (cuts[rank + 1] - cuts[rank]) * static_cast<int64_t>(sizeof(float));
  };
  for (int32_t rank = 0; rank < ranks; ++rank) {
    bool isOther = rank != self;
    send[rank] = {block + cuts[self], isOther ? bytesOf(self) : 0};
    receive[rank] = {block + cuts[rank], isOther ? bytesOf(rank) : 0};
    received += receive[rank].bytes;
  }
  comm.exchange(send, receive);
  return received;
}

} // namespace genrec::rt
