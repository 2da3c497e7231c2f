//===- main.cpp - main() of every compiled model --------------------------===//

#include "genrec_rt/trainer.h"

int main(int argc, char **argv) { return genrec::rt::trainerMain(*genrec_model(), argc, argv); }
