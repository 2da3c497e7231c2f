//===- target.cpp - The model written by hand, as a program ---------------===//

#include "../Runtime/TinyModel.h"
#include "genrec_rt/trainer.h"

int main(int argc, char **argv) {
  return genrec::rt::trainerMain(genrec::rt::test::tinyModel(), argc, argv);
}
