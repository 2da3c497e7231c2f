//===- launcher.cpp - Whether this process is one of several ranks --------===//

#include "launcher.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace genrec::rt {

namespace {

/// The number in an environment variable, 0 where there is none.
int32_t numberIn(const char *name) {
  const char *text = std::getenv(name);
  return text ? static_cast<int32_t>(std::clamp<long>(std::strtol(text, nullptr, 10), 0, 1 << 30))
              : 0;
}

/// How many ranks a launcher started, in all and on this machine, and which of them this is.
struct Variables {
  const char *ranks, *localRanks, *rank;
};

constexpr Variables kLaunchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_RANK"}, // Open MPI
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_RANK"},    // MVAPICH2
    {"PMI_SIZE", "MPI_LOCALNRANKS", "PMI_RANK"}, // MPICH, Intel MPI, srun --mpi=pmi2
    {"PMIX_SIZE", "PMIX_LOCAL_SIZE", "PMIX_RANK"},
    // srun, and it alone: "4(x2)" is 4
    {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE", "SLURM_PROCID"},
};

} // namespace

Launch currentLaunch() {
  for (const Variables &launcher : kLaunchers)
    if (int32_t ranks = numberIn(launcher.ranks); ranks > 1)
      return {ranks, std::max(1, numberIn(launcher.localRanks)), numberIn(launcher.rank),
              launcher.ranks};
  // PMIx need not say how many there are, but a rank above 0 has others before it.
  if (int32_t rank = numberIn("PMIX_RANK"); rank > 0)
    return {2, 1, rank, "PMIX_RANK"};
  return {};
}

bool isWatched() {
  if (!isatty(STDOUT_FILENO))
    return false;
  bool isLaunched = std::any_of(std::begin(kLaunchers), std::end(kLaunchers),
                                [](const Variables &each) { return numberIn(each.ranks) > 0; });
  if (!isLaunched)
    return true;
  // On other machines than the launcher's it is a daemon, which has none: rank 0 tells lines there.
  std::string path = "/proc/" + std::to_string(getppid()) + "/fd/1";
  int out = open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  if (out < 0)
    return false;
  bool isTerminal = isatty(out);
  close(out);
  return isTerminal;
}

} // namespace genrec::rt
