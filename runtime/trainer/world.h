//===- world.h - The ranks that run a command together -----------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_WORLD_H
#define GENREC_RT_TRAINER_WORLD_H

#include "../core/threads.h"
#include "genrec_rt/comm.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace genrec::rt {

/// This process, alone or with those that a launcher started beside it.
class World {
public:
  World() = default;
  ~World();
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  /// Connects to the others over MPI where a launcher started several or `wanted` (--comm) is mpi,
  /// unless it is none. A batch of several `portions` needs a communicator on one rank, too.
  void connect(const std::string &wanted, int32_t portions);

  /// Of what the command does; null alone.
  Communicator *comm() { return steps.get(); }
  bool isFirst() const { return number == 0; }
  int32_t rank() const { return number; }
  int32_t ranks() const { return count; }
  /// This rank's share of the cores of its machine. Collective.
  int32_t threads();
  /// Whether all ranks are on one machine: messages are copies in memory then. Collective.
  bool isOneMachine();

  /// How long a call of the communicator waits for another rank; five minutes unless told.
  void setPatience(std::chrono::milliseconds time);

  /// How the command ended here. `noticed`: a call of the communicator has found another rank gone;
  /// `heard`: it has been told that one failed.
  enum class Ending : char { done, failed, noticed, heard };
  /// Ends it on all ranks, which wait for each other, since launchers kill the others once one has
  /// gone with an error. Where it failed, one rank calls `tell`. Returns whether it failed nowhere.
  bool end(Ending mine, const std::string &error = {}, const std::function<void()> &tell = {});

private:
  std::vector<Cores> coresOfAll();
  bool isTelling(Ending mine);

  /// A rank that failed ends all calls of `steps`; what ranks say afterwards is on `endings`.
  std::unique_ptr<Communicator> endings, steps;
  int32_t number = 0, count = 1; ///< of this rank, and of ranks
  bool failed = false;
};

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_WORLD_H
