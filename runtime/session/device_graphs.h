//===- device_graphs.h - Steps that were captured ----------------*- C++ -*-===//
//
// The stages of a step behind dispatch queue the same work in every step that has the same
// addresses and capacities: a key says which these are. Once a key was seen, the next step with it
// is captured, and later ones launch what was captured. What differs between them is in memory of
// the device: the batch, its counts, the number of the step; and in pinned memory that the graph
// copies from: the step's scalars.
//
// Of a portion, the compute stage is captured, in several graphs: what it gives to sums over
// portions, takes of them or looks up follows from the data, and is called between two of them. The
// update stage of all portions has graphs of its own; between two of them, ranks exchange a norm.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_DEVICE_GRAPHS_H
#define GENREC_RT_SESSION_DEVICE_GRAPHS_H

#include "device_reports.h"

#include "genrec_rt/graph_key.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace genrec::rt {

/// A scalar of the step that a stage asked for (genrec_rt_store_step_value), and the pinned memory
/// that it is copied from.
struct StepScalar {
  int32_t kind;
  double argument;
  float *pinned;
};

/// A graph, and a call that comes behind it; null: none.
struct StepPiece {
  std::unique_ptr<DeviceGraph> graph;
  std::function<void()> then;
};

/// What the host does in place of running the stages: here all of it.
struct StepGraph {
  explicit StepGraph(Device &device) : results(device) {}

  GraphKey key;
  int64_t memoryVersion = -1; ///< Device::memoryVersion when the key was seen
  int64_t pinnedBytes = 0;    ///< that the step took then
  bool isRefused = false;
  std::vector<StepPiece> pieces; ///< in the order of the stages; none: not captured
  PinnedPieces results;
  DeviceReports::Recorded reported;
  std::vector<StepScalar> scalars;
  std::vector<genrec_domain> domains; ///< as the stages have left them
};

/// How many stages were captured, and how many times that was launched.
struct CaptureCounts {
  int64_t captures = 0, launches = 0;

  /// Launches of what was captured in a step before.
  int64_t plainLaunches() const { return launches - captures; }
};

/// The graphs of all slots and programs of a session; those used last are kept: eight, or, of
/// several portions, eight for each and as many for the update stage.
class StepGraphs {
public:
  static constexpr size_t kMost = 8;

  explicit StepGraphs(Device &device) : device(device) {}

  void setPortions(int32_t count) { most = kMost * (static_cast<size_t>(count) + 1); }

  /// The graph of a key, not captured where there was none.
  StepGraph &of(const GraphKey &key);
  /// Says why steps are not captured, each reason once.
  void refuse(const std::string &why);
  const std::vector<std::string> &refusals() const { return reasons; }

  CaptureCounts stages; ///< behind dispatch; of several portions, of each by itself, without update
  CaptureCounts updates; ///< of several portions

private:
  Device &device;
  size_t most = kMost;
  std::vector<std::unique_ptr<StepGraph>> kept; ///< the last used one first
  std::vector<std::string> reasons;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_DEVICE_GRAPHS_H
