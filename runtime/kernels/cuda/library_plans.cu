//===- library_plans.cu - What cuBLASLt is asked once per shape -----------===//

#include "library_plans.h"

namespace genrec::rt::cuda {

namespace {
/// What NVIDIA advises for Hopper; without split-K algorithms want little of it.
constexpr uint64_t kMostWorkspaceBytes = uint64_t(32) << 20;
} // namespace

LibraryPlans *LibraryPlans::get() {
  const Library *library = Library::get();
  if (!library)
    return nullptr;
  static LibraryPlans plans(*library);
  return &plans;
}

LibraryPlans::Library::Handle LibraryPlans::handleOf(int device) {
  Library::Handle &handle = handles[device];
  if (!handle)
    library.check(library.create(&handle), "cublasLtCreate");
  return handle;
}

LibraryPlans::Library::Layout LibraryPlans::makeLayout(const LibraryShape &shape, int type,
                                                       int64_t rows, int64_t columns, int64_t ld,
                                                       int64_t stride) {
  Library::Layout layout = nullptr;
  library.check(library.layoutCreate(&layout, type, static_cast<uint64_t>(rows),
                                     static_cast<uint64_t>(columns), ld),
                "cublasLtMatrixLayoutCreate");
  const auto batches = static_cast<int32_t>(shape.batches);
  auto set = [&](int attribute, const auto &value) {
    library.check(library.layoutSet(layout, attribute, &value, sizeof(value)),
                  "cublasLtMatrixLayoutSetAttribute");
  };
  set(Library::kBatchCount, batches);
  set(Library::kBatchStride, stride);
  return layout;
}

LibraryPlans::Plan LibraryPlans::make(const LibraryShape &s) {
  Plan plan;
  library.check(library.descCreate(&plan.desc, Library::kCompute32F, Library::kFloat),
                "cublasLtMatmulDescCreate");
  auto set = [&](int attribute, int32_t value) {
    library.check(library.descSet(plan.desc, attribute, &value, sizeof(value)),
                  "cublasLtMatmulDescSetAttribute");
  };
  set(Library::kTransposeA, s.transposesA ? Library::kTransposed : Library::kAsIs);
  set(Library::kTransposeB, s.transposesB ? Library::kTransposed : Library::kAsIs);
  set(Library::kEpilogue, s.hasBias ? Library::kBias : Library::kNoEpilogue);
  const int type = s.isBf16 ? Library::kBf16 : Library::kFloat;
  plan.a = s.transposesA ? makeLayout(s, type, s.k, s.m, s.ldA, s.strideA)
                         : makeLayout(s, type, s.m, s.k, s.ldA, s.strideA);
  plan.b = s.transposesB ? makeLayout(s, type, s.n, s.k, s.ldB, s.strideB)
                         : makeLayout(s, type, s.k, s.n, s.ldB, s.strideB);
  plan.d = makeLayout(s, Library::kFloat, s.m, s.n, s.ldD, s.strideD);
  plan.c = s.addsC ? makeLayout(s, Library::kFloat, s.m, s.n, s.ldC, s.strideD) : plan.d;
  return plan;
}

const LibraryPlans::Plan &LibraryPlans::plannedFor(const LibraryShape &shape) {
  auto [at, isNew] = chosen.try_emplace(shape);
  Plan &plan = at->second;
  if (!isNew)
    return plan;
  plan = make(shape);
  Library::Preference preference = nullptr;
  library.check(library.preferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  auto set = [&](int attribute, const auto &value) {
    library.check(library.preferenceSet(preference, attribute, &value, sizeof(value)),
                  "cublasLtMatmulPreferenceSetAttribute");
  };
  set(Library::kMostWorkspaceBytes, kMostWorkspaceBytes);
  set(Library::kReductionSchemes, uint32_t(0)); // none: an element is added up by one block
  set(Library::kAlignmentA, shape.alignA);
  set(Library::kAlignmentB, shape.alignB);
  set(Library::kAlignmentC, shape.addsC ? shape.alignC : shape.alignD);
  set(Library::kAlignmentD, shape.alignD);
  Library::Heuristic result = {};
  int found = 0;
  const int status = library.getHeuristic(handleOf(shape.device), plan.desc, plan.a, plan.b, plan.c,
                                          plan.d, preference, 1, &result, &found);
  library.check(library.preferenceDestroy(preference), "cublasLtMatmulPreferenceDestroy");
  plan.isThere = status == Library::kSuccess && found > 0 && result.status == Library::kSuccess;
  plan.algorithm = result.algorithm;
  return plan;
}

bool LibraryPlans::has(const LibraryShape &shape, const LibraryShape &planned) {
  std::lock_guard lock(mutex);
  auto [at, isNew] = plans.try_emplace(shape);
  Plan &plan = at->second;
  if (!isNew)
    return plan.isThere;
  const Plan &origin = plannedFor(planned);
  if (!origin.isThere)
    return false;
  plan = make(shape);
  plan.algorithm = origin.algorithm;
  Library::Heuristic result = {};
  const int status = library.checkAlgorithm(handleOf(shape.device), plan.desc, plan.a, plan.b,
                                            plan.c, plan.d, &plan.algorithm, &result);
  plan.isThere = status == Library::kSuccess && result.workspaceBytes <= kMostWorkspaceBytes;
  plan.workspaceBytes = result.workspaceBytes;
  return plan.isThere;
}

int64_t LibraryPlans::workspaceBytes(const LibraryShape &shape) {
  std::lock_guard lock(mutex);
  return static_cast<int64_t>(plans.at(shape).workspaceBytes);
}

void LibraryPlans::multiply(const LibraryShape &shape, const LibraryOperands &o, void *workspace,
                            cudaStream_t stream) {
  const float one = 1, beta = shape.addsC ? 1 : 0;
  std::lock_guard lock(mutex); // a descriptor has one bias at a time
  const Plan &plan = plans.at(shape);
  if (shape.hasBias)
    library.check(library.descSet(plan.desc, Library::kBiasPointer, &o.bias, sizeof(o.bias)),
                  "cublasLtMatmulDescSetAttribute");
  library.check(library.multiply(handleOf(shape.device), plan.desc, &one, o.a, plan.a, o.b, plan.b,
                                 &beta, shape.addsC ? o.c : o.d, plan.c, o.d, plan.d,
                                 &plan.algorithm, workspace, plan.workspaceBytes, stream),
                "cublasLtMatmul");
}

} // namespace genrec::rt::cuda
