//===- HostTables.h - tables whose rows a device has a part of --*- C++ -*-===//
//
// Where rows of all tables take more memory than a device has, those of some tables are in the
// host's memory, and the device keeps as many as steps use most (--host-tables of a binary). A step
// copies the others over the bus, in and out. So the device's memory goes to the rows with the
// most expected lookups by a step per byte, whatever their table: a row that a step looks up with
// probability p and of b bytes costs 2 p b where it is not there.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_REPORT_HOSTTABLES_H
#define GENREC_LIB_REPORT_HOSTTABLES_H

#include "World.h"

namespace genrec {

/// Where the rows of one table are, on all ranks together.
struct HostTableChoice {
  double rows = 0, rowBytes = 0; ///< with optimizer states
  double cachedRows = 0;         ///< of `rows`
  double missedRows = 0;         ///< that a step copies into devices
  bool isOnHost = false;
  std::string why;
};

/// The tables to keep in the host's memory so that a step copies the fewest bytes.
struct HostTables {
  HostTables(const World &world, const ExplainOptions &options);

  std::vector<HostTableChoice> choices; ///< by table of the world
  double allBytes = 0;                  ///< of rows of all tables, per rank
  double busBytes = 0;                  ///< that a step copies, per rank
};

/// What --device-memory asks for, and as text.
/// `model`: as it runs, with tables merged. A table that has room and shares a store with one that
/// has not goes to the host's memory with it, and has all of its rows in the cache.
llvm::json::Object describeHostTables(ModelOp model, const World &world,
                                      const ExplainOptions &options);
void printHostTables(const llvm::json::Object &hostTables, llvm::raw_ostream &os);

} // namespace genrec

#endif // GENREC_LIB_REPORT_HOSTTABLES_H
