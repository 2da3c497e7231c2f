// Column programs as compiled code would instantiate them, for nvcc: its report is held against
// resources.allowance.

#include "genrec_rt/kernels/cuda/columns.h"

namespace genrec::rt::cuda {

template void runColumns<ColumnProgram<HashXxh3, Modulo>>(const ColumnDescriptor *, int64_t,
                                                          int64_t, bool, cudaStream_t);
template void runColumns<ColumnProgram<HashMurmur3>>(const ColumnDescriptor *, int64_t, int64_t,
                                                     bool, cudaStream_t);
template void runColumns<ColumnProgram<Bucketize>>(const ColumnDescriptor *, int64_t, int64_t, bool,
                                                   cudaStream_t);

} // namespace genrec::rt::cuda
