//===- session_options.cpp - What flags ask of a session ------------------===//

#include "flags.h"

#include "commands.h"

#include "genrec_rt/size.h"

namespace genrec::rt {

SessionOptions sessionOptions(const Flags &flags, const genrec_model_desc &model) {
  SessionOptions options;
  options.seed = flags.seed.value_or(0);
  options.threads = flags.threads;
  options.learningRate = flags.learningRate;
  options.clipNorm = flags.clipNorm;
  options.clipValue = flags.clipValue;
  options.checkFinite = flags.checkFinite;
  options.explainNonFinite = !flags.allowNonFinite;
  options.profile = flags.isProfiled || !flags.profile.empty();
  options.captureSteps = flags.capture == "on";
  options.portions = flags.portions;
  options.shardOptimizer = flags.shardOptimizer;
  options.earlyGradients = flags.earlyGradients == "on"    ? EarlyGradients::yes
                           : flags.earlyGradients == "off" ? EarlyGradients::no
                                                           : EarlyGradients::tried;
  options.overlap = flags.overlap == "none"   ? Overlap::none
                    : flags.overlap == "keys" ? Overlap::keys
                                              : Overlap::rows;
  options.rowTravel.bf16Values = flags.rowWire == "bf16";
  options.rowTravel.bf16Sums = flags.gradientWire == "bf16";
  options.rowTravel.requestersDeduplicate =
      flags.deduplicate == "both" || flags.deduplicate == "requester";
  options.rowTravel.ownersDeduplicate = flags.deduplicate == "both" || flags.deduplicate == "owner";
  options.choosesReplicas = flags.choosesReplicas();
  if (flags.namesReplicas())
    options.replicate = flags.replicate;
  options.replicaBytes = (Size(flags.replicaMemoryMegabytes) * (1 << 20)).saturated();
  options.hostTables = flags.hostTables;
  options.caughtSignal = caughtSignal;
  Schedule schedule;
  if (model.schedule)
    schedule = {model.schedule, model.schedule_warmup, model.schedule_steps, model.schedule_final};
  schedule.kind = flags.schedule.value_or(schedule.kind);
  schedule.warmup = flags.warmup.value_or(schedule.warmup);
  schedule.steps = flags.scheduleSteps.value_or(schedule.steps);
  schedule.final = flags.scheduleFinal.value_or(schedule.final);
  options.schedule = schedule;
  return options;
}

} // namespace genrec::rt
