//===- step_sums.h - What a step adds up over its portions ------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_STEP_SUMS_H
#define GENREC_RT_SESSION_STEP_SUMS_H

#include "../ranks/row_exchange.h"
#include "genrec_rt/portions.h"
#include "genrec_rt/session.h"
#include "parameter_shards.h"
#include "sums_ahead.h"

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace genrec::rt {

/// What a rank reports beside its portions.
struct OwnReport {
  int32_t signal = 0;
  std::optional<int64_t> seconds = {}; ///< of the step, as far as this rank knows
  bool isNextAhead = false;
};

/// What all portions of a batch report, added up in the order of portions.
struct RanksReport {
  std::vector<LossValue> losses;
  int64_t rows = 0;   ///< root rows
  int32_t signal = 0; ///< the largest of all ranks
  bool isNextAhead = false; ///< what rank 0 says
  std::optional<int64_t> seconds; ///< the latest of all ranks
};

/// The sums over portions of one step, and what it reports. They travel beside table rows: all that
/// is complete rides in the next round. Where ranks share the updates of parameters, a rank gets
/// the sums of gradients of the rows that it updates only.
class StepSums : public Rider {
public:
  /// Floats that are worth rounds of their own: a bucket that the compiler has filled.
  static constexpr int64_t kLeastAhead = 65536;

  StepSums(Communicator &comm, int32_t portions, int32_t losses, const ParameterShards &shards);

  /// Begins a step.
  void begin();

  /// Gives lists of `floats` partial values of the next portion to the sums of `number`.
  /// parameters[i]: the parameter whose gradient list i is, -1 for none; the same in every step.
  void contribute(int32_t number, std::span<const float *const> partial,
                  std::span<const int64_t> floats, std::span<const int32_t> parameters);
  /// The same of a sum that only the update reads. One of a whole bucket that is complete begins to
  /// travel; all ranks give the same ones in the same order.
  void sendAhead(int32_t number, SumsAhead &ahead, CommPurpose purpose);
  /// Those that travelled ahead are there.
  void endAhead();
  /// The totals: of a parameter's gradient, those of the rows that this rank updates. Collective on
  /// `on` where they have not travelled yet.
  void collect(Communicator &on, int32_t number, std::span<float *const> totals);

  /// Whether the totals have travelled.
  bool has(int32_t number) const {
    return static_cast<size_t>(number) < sums.size() && sums[number].isReduced;
  }

  /// Reports ride in the next round, too. `slots`: this rank's portions.
  void report(std::span<StepSlot *const> slots, const OwnReport &own);
  const RanksReport &getReport() const { return reported; }

  int64_t getBytes(int32_t from, int32_t to) const override;
  void write(int32_t to, char *message) override;
  void read(int32_t from, char *message) override;
  /// Ends a round: adds up what came. Collective on `on` only where vectors are cut into slices
  /// that all ranks read. `messagesStay`: until the end of the step, so that totals need no memory
  /// of their own.
  void finish(Communicator &on, bool messagesStay);

  /// Of sums, from other ranks, since this was made.
  int64_t getReceivedBytes() const { return receivedBytes; }

private:
  /// Floats of list `list` from `first` on, and where they are in a vector.
  struct Piece {
    size_t list;
    int64_t first, count, at;
  };
  /// Lists of values, side by side.
  struct Vector {
    std::unique_ptr<PortionSums> portions; ///< null: there are none
    std::vector<Piece> pieces;
    std::vector<Piece> read; ///< those that this rank reads the totals of
    int64_t length = 0;
    std::vector<float> memory; ///< for a total that must outlive its messages
    /// The total, in one part; where there are slices, by rank, those that this rank reads.
    std::vector<const float *> total;
    std::vector<float *> messages; ///< by rank, of this round

    void setTotal(const float *slice, int32_t rank);
    void copyTotal(int64_t begin, int64_t count, float *to) const;
    void keepTotal();
  };
  struct Sums {
    Vector whole; ///< what every rank reads
    Vector owned; ///< gradients of parameters, rank by rank, of which each reads its own
    bool isReduced = false;
    bool isAhead = false; ///< it travels by itself
    bool rides() const;
  };
  void describe(Sums &sums, std::span<const int64_t> floats, std::span<const int32_t> parameters);
  void gather(Communicator &on, std::span<Vector *const> vectors);
  template <class Self, class Body> static void forRiding(Self &self, const Body &body);
  int64_t reportDoubles(int32_t from) const;
  void countReceived(const PortionSums &sums, int64_t gathered);
  void addReports();

  const int32_t rank, ranks, count;
  const ParameterShards &shards;
  std::deque<Sums> sums; ///< by number; they stay where they are
  RanksReport reported;
  bool reports = false;
  int64_t receivedBytes = 0;
  std::vector<double> mine;             ///< what this rank reports
  std::vector<const double *> messages; ///< what each rank reports
  std::vector<Vector *> sliced, added;  ///< scratch of `finish`
  std::vector<std::vector<float>> slices; ///< by rank: those of a round, one behind another
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_STEP_SUMS_H
