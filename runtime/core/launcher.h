//===- launcher.h - Whether this process is one of several ranks -*- C++ -*-===//

#ifndef GENREC_RT_CORE_LAUNCHER_H
#define GENREC_RT_CORE_LAUNCHER_H

#include <cstdint>
#include <string>

namespace genrec::rt {

/// What started this process beside others like it: mpirun, mpiexec, srun.
struct Launch {
  int32_t ranks = 1;      ///< in all; 2 where it is only known that there are several
  int32_t localRanks = 1; ///< on this machine, as far as is known
  int32_t rank = 0;       ///< this one, as far as is known
  std::string variable;   ///< of the environment, which said so; empty for one rank

  bool isOneOfSeveral() const { return ranks > 1; }
};

/// Reads it from the environment. Inside of a batch job (sbatch, salloc) a program that srun
/// did not start is one process, whatever SLURM_NTASKS says: those are the job's tasks, and
/// they count once srun starts them.
Launch currentLaunch();

/// Whether somebody watches standard output on a terminal. `mpirun` gives each rank a terminal of
/// its own, whatever becomes of what the rank writes: that of the launcher counts then.
bool isWatched();

} // namespace genrec::rt

#endif // GENREC_RT_CORE_LAUNCHER_H
