//===- load_mpi.cpp - the communicator over MPI, loaded where it is asked for ===//

#include "genrec_rt/comm.h"

#include <dlfcn.h>

using namespace genrec::rt;

std::unique_ptr<Communicator> genrec::rt::loadMpiComm(const std::string &library) {
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!handle)
    throw Error("cannot load the communicator over MPI: " + std::string(dlerror()),
                "install Open MPI (apt install openmpi-bin) and build genrec where it is; "
                "GENREC_COMM_LIBRARY names another libgenrec-comm-mpi.so; --comm none runs this "
                "process alone");
  using Make = Communicator *(*)(std::string &problem);
  auto make = reinterpret_cast<Make>(dlsym(handle, "genrec_make_mpi_comm"));
  if (!make)
    throw Error("'" + library + "' holds no communicator of genrec",
                "name libgenrec-comm-mpi.so of the same build");
  std::string problem;
  std::unique_ptr<Communicator> comm(make(problem));
  if (!comm)
    throw Error(problem);
  return comm;
}
