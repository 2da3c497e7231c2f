//===- load_mpi.cpp - the communicator over MPI, loaded where it is asked for ===//

#include "genrec_rt/comm.h"

#include <dlfcn.h>

#include <string_view>

using namespace genrec::rt;

std::unique_ptr<Communicator> genrec::rt::loadMpiComm(const std::string &library) {
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!handle)
    throw Error("cannot load the communicator over MPI: " + std::string(dlerror()),
                "install Open MPI (apt install openmpi-bin) and build genrec where it is; "
                "GENREC_COMM_LIBRARY names another libgenrec-comm-mpi.so; --comm none runs this "
                "process alone");
  auto header = reinterpret_cast<const char *(*)()>(dlsym(handle, "genrec_comm_header"));
  using Make = Communicator *(*)(std::string &problem);
  auto make = reinterpret_cast<Make>(dlsym(handle, "genrec_make_mpi_comm"));
  if (!make)
    throw Error("'" + library + "' holds no communicator of genrec",
                "name libgenrec-comm-mpi.so of the same build");
  // Its classes are called as this program's header has them.
  if (!header || std::string_view(header()) != GENREC_COMM_HEADER)
    throw Error("'" + library + "' is of another build of genrec than this program",
                "compile the model again; or GENREC_COMM_LIBRARY names libgenrec-comm-mpi.so of the "
                "build that compiled it");
  std::string problem;
  std::unique_ptr<Communicator> comm(make(problem));
  if (!comm)
    throw Error(problem);
  return comm;
}
