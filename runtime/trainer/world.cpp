//===- world.cpp - The ranks that run a command together ------------------===//

#include "world.h"

#include "../core/launcher.h"
#include "genrec_rt/forwarding_comm.h"
#include "genrec_rt/portions.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace genrec::rt {

/// How long a rank that failed waits for others, which may be in the middle of something long.
static constexpr std::chrono::seconds kLastPatience(5);

World::~World() {
  if (!failed)
    return;
  // Freeing them is collective, and others may be anywhere.
  (void)steps.release();
  (void)endings.release();
}

void World::connect(const std::string &wanted, int32_t portions) {
  bool several = currentLaunch().isOneOfSeveral();
  if (wanted == "mpi" || (wanted == "auto" && several)) {
    const char *library = std::getenv("GENREC_COMM_LIBRARY");
    // Compiled models have the folder of the build in their rpath.
    endings = loadMpiComm(library ? library : "libgenrec-comm-mpi.so");
    number = endings->getRank();
    count = endings->getSize();
    steps = endings->duplicate();
    if (askedLatency().count() > 0)
      steps = delayExchanges(std::move(steps), askedLatency());
  }
  if (portions > 0)
    (void)getPortions(portions, number, count); // throws where a rank would have none
  if (!steps && portions > 1)
    steps = makeSingleComm();
}

std::vector<Cores> World::coresOfAll() {
  Cores own = ownCores();
  std::vector<Cores> all(count, own);
  if (steps)
    steps->allGather(&own, all.data(), sizeof own);
  return all;
}

void World::setPatience(std::chrono::milliseconds time) {
  if (endings)
    endings->setPatience(time);
  if (steps)
    steps->setPatience(time);
}

int32_t World::threads() { return shareOfCores(coresOfAll(), number); }

bool World::isOneMachine() {
  std::vector<Cores> all = coresOfAll();
  return std::all_of(all.begin(), all.end(), [&](const Cores &each) {
    return std::strncmp(each.machine, all[0].machine, sizeof each.machine) == 0;
  });
}

/// Whether this rank is the one that tells of the failure: the first that failed, of those that
/// are known where a rank is lost. Ranks may know different ones then: rather twice than never.
bool World::isTelling(Ending mine) {
  std::vector<Ending> all(count, Ending::done);
  all[number] = mine;
  try {
    endings->allGather(&mine, all.data(), sizeof mine);
    failed = std::any_of(all.begin(), all.end(), [](Ending of) { return of != Ending::done; });
  } catch (const CommError &error) {
    failed = true;
    const bool knowsOthers = std::count(all.begin(), all.end(), Ending::done) < count - 1;
    if (mine == Ending::heard && !error.isOwn && !knowsOthers)
      return false; // this rank is late, and others have told
  } catch (const std::exception &) {
    failed = true;
  }
  for (Ending telling : {Ending::failed, Ending::noticed, Ending::heard})
    if (auto first = std::find(all.begin(), all.end(), telling); first != all.end())
      return first - all.begin() == number;
  return false;
}

bool World::end(Ending mine, const std::string &error, const std::function<void()> &tell) {
  failed = mine != Ending::done;
  if (count == 1) {
    if (failed && tell)
      tell();
    return !failed;
  }
  if (mine == Ending::failed)
    steps->abort(error);
  if (failed)
    endings->setPatience(kLastPatience);
  if (isTelling(mine) && tell)
    tell();
  if (failed)
    try {
      endings->setPatience(kLastPatience);
      endings->barrier();
    } catch (const std::exception &) {
      // They have gone without waiting.
    }
  return !failed;
}

} // namespace genrec::rt
