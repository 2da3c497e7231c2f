//===- warm_start.h - Training that starts from given values -----*- C++ -*-===//
//
// What `train --init` names. An entry is
//
//   <path>                   everything in it that has a name of the model: the folder of an
//                            export, of a checkpoint, or a safetensors file
//   <name>=<path>            one table or parameter: a .npy array, a Parquet table, or the
//                            tensors of this name in any of the above
//   <name>=<path>:<source>   the same, called otherwise there: `item=export:movie`; of a
//                            Parquet table its id and vector columns: `item=v.parquet:id,vector`;
//                            of a .npy array the ids of its rows: `item=v.npy:ids.npy`
//
// A path that is there as it stands is not taken apart. Entries that name a table or parameter
// come before those that name none. Values are weights alone: optimizer states start anew, for
// their corrections count the steps of this run.
//
// Of a table, rows [n, dim] come with n distinct ids; an array alone has the ids 0 to n - 1. The
// rows of a parameter of two sizes may come with ids, too: then these rows are set, the others
// keep their initial value.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_WARM_START_H
#define GENREC_RT_WARM_START_H

#include "genrec_rt/session.h"

#include <string>
#include <vector>

namespace genrec::rt {

/// What became of a warm start.
struct WarmStart {
  struct Filled {
    std::string name;
    bool isTable;
    int64_t rows;       ///< of a table, or set in a parameter of two sizes; 0: all of a parameter
    std::string source; ///< "export/tables.safetensors: 'movie'"
  };
  std::vector<Filled> filled;
  std::vector<std::string> notFilled; ///< tables and parameters that keep their initial values
  std::vector<std::string> unused;    ///< what sources have and the model has not: "export: 'movie'"
};

/// Fills a fresh session; on several ranks, each takes the rows that it owns. Error, with both sides, where shapes or element types differ; where an id
/// is beyond its table or comes twice, a value is not finite, a source has nothing that fits, or an
/// entry names what the model or the source lacks. After an Error the session is undefined.
WarmStart warmStart(const std::vector<std::string> &entries, Session &session);

/// The files that entries name, as far as they are there.
std::vector<std::string> warmStartFiles(const std::vector<std::string> &entries);

} // namespace genrec::rt

#endif // GENREC_RT_WARM_START_H
