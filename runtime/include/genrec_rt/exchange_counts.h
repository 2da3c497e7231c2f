//===- exchange_counts.h - What ranks have exchanged -------------*- C++ -*-===//

#ifndef GENREC_RT_EXCHANGE_COUNTS_H
#define GENREC_RT_EXCHANGE_COUNTS_H

#include <cstdint>

namespace genrec::rt {

/// What one rank has exchanged with others in some steps. Bytes are those that came from other
/// ranks, without headers and room that is left over. `genrec-compile --explain --world` predicts
/// them.
struct ExchangeCounts {
  int64_t rounds = 0;   ///< of messages
  int64_t lookedUp = 0; ///< ids of lookups, as often as they occur
  int64_t asked = 0;    ///< distinct ones, per step
  int64_t served = 0;   ///< ids that ranks asked this one for
  int64_t found = 0;    ///< distinct ones of them, per step
  int64_t idBytes = 0;
  int64_t rowBytes = 0;      ///< of rows' values
  int64_t earlyRowBytes = 0; ///< of those that came beside the step before
  int64_t gradientBytes = 0; ///< of rows' gradients, and of what says which rows have some
  int64_t denseBytes = 0;    ///< of sums over portions: gradients of parameters, weights of losses

  void add(const ExchangeCounts &other) {
    for (auto count :
         {&ExchangeCounts::rounds, &ExchangeCounts::lookedUp, &ExchangeCounts::asked,
          &ExchangeCounts::served, &ExchangeCounts::found, &ExchangeCounts::idBytes,
          &ExchangeCounts::rowBytes, &ExchangeCounts::earlyRowBytes, &ExchangeCounts::gradientBytes,
          &ExchangeCounts::denseBytes})
      this->*count += other.*count;
  }
};

} // namespace genrec::rt

#endif // GENREC_RT_EXCHANGE_COUNTS_H
