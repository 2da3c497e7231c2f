//===- launcher.cpp - Whether this process is one of several ranks --------===//

#include "launcher.h"

#include "genrec_rt/error.h"

#include <algorithm>
#include <cstdlib>

namespace genrec::rt {

namespace {

/// The number in an environment variable, 0 where there is none.
int32_t numberIn(const char *name) {
  const char *text = std::getenv(name);
  return text ? static_cast<int32_t>(std::clamp<long>(std::strtol(text, nullptr, 10), 0, 1 << 30))
              : 0;
}

/// How many ranks a launcher started, in all and on this machine.
struct Variables {
  const char *ranks, *localRanks;
};

constexpr Variables kLaunchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}, // Open MPI
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"},   // MVAPICH2
    {"PMI_SIZE", "MPI_LOCALNRANKS"},                        // MPICH, Intel MPI, srun --mpi=pmi2
    {"PMIX_SIZE", "PMIX_LOCAL_SIZE"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"}, // srun, and it alone: "4(x2)" is 4
};

} // namespace

Launch currentLaunch() {
  for (const Variables &launcher : kLaunchers)
    if (int32_t ranks = numberIn(launcher.ranks); ranks > 1)
      return {ranks, std::max(1, numberIn(launcher.localRanks)), launcher.ranks};
  // PMIx need not say how many there are, but a rank above 0 has others before it.
  if (numberIn("PMIX_RANK") > 0)
    return {2, 1, "PMIX_RANK"};
  return {};
}

void requireSingleRank(const std::string &program) {
  Launch launch = currentLaunch();
  if (!launch.isOneOfSeveral())
    return;
  const std::string count = launch.variable == "PMIX_RANK" ? "several" : std::to_string(launch.ranks);
  throw Error("this process is one of " + count + " ranks (" + launch.variable + "=" +
                  std::getenv(launch.variable.c_str()) +
                  "), but a model runs on one machine: every rank would do the same work and "
                  "write the same files",
              "start " + program + " once, without mpirun or srun -n: it uses all cores (--threads); "
              "for independent runs with folders of their own, start each by env -u " +
                  launch.variable + " " + program);
}

} // namespace genrec::rt
