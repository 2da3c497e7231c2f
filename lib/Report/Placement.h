//===- Placement.h - which tables ranks replicate ---------------*- C++ -*-===//

#ifndef GENREC_LIB_REPORT_PLACEMENT_H
#define GENREC_LIB_REPORT_PLACEMENT_H

#include "World.h"

#include "genrec_rt/placement.h"

namespace genrec {

/// What a run of so many ranks would choose for the tables of `world`, by its own cost model.
struct WorldPlacement : rt::Placement {
  WorldPlacement(const World &world, const RankMachine &machine);

  std::vector<double> residentBytes; ///< by table of the world: of a replica, on each rank
};

} // namespace genrec

#endif // GENREC_LIB_REPORT_PLACEMENT_H
