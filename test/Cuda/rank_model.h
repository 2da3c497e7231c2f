//===- rank_model.h - A model for devices of several ranks ------*- C++ -*-===//
//
// device_model.h's regression with the stages of a model that portions train:
//
//   dispatch    looks the rows up
//   compute     loss and gradients; gives them to the sums
//   update      of the sums over all portions: SGD on the weight and on the rows that a rank owns
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_RANK_MODEL_H
#define GENREC_TEST_CUDA_RANK_MODEL_H

#include "device_model.h"

namespace genrec::rt::cuda::test {

const genrec_model_desc &rankModel();

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_RANK_MODEL_H
