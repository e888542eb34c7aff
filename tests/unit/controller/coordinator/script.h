#pragma once

// Scripts for the coordinator's core: text in, everything that it does as text out.
//
//   job chief=1 worker=3 [attempt=N] [chief_incarnation=N] [policy=next|Never|OnFailure|ExitCode] [min=N]
//   [form=MS] [rejoin=MS] [standby=N, of the workers] [least=N, that must be left with policy=Never; else
//   min] [trained=1 [finished=N]] [built_in=1] [told=N] always first; time begins at 0
//       [ps=N [mode=async|ssp] [gradients=N] [lost=N]] [evaluator=1]      lost, finished: the worker of
//       that index, before
//   hello STREAM ROLE INDEX [id=X] [pod=X] [job=X] [version=N] [attempt=N] [incarnation=N]
//       [held=G [rank=N] [size=N] [share=X]] [known=G] [catches=0]
//   alive STREAM...                                  those that send heartbeats by themselves, every 200 ms
//   resize worker=N [least=N]
//   rebalance on | rebalance off                     also job rebalance=1 batch=N: lostSeconds is 0
//   job preflight=FACTOR [excludes=N, of the workers]
//   checked STREAM number=N compute_ms=N [link_ms=N] [error=X]
//   save [TEXT]                                      also job save=TEXT
//   handover ROLE INDEX NUMBER | handover none       also, of a worker, job handover=INDEX [number=N]
//   wait MS                                          time passes, with a tick every 50 ms
//   away MS                                          time passes, and the coordinator sees nothing of it
//   beat STREAM [gen=N] [step=N] [steps=N] [samples=N] [total=N] [phase=NAME] [hash=N hash_step=N]
//   [records=N] [step_ms=N] [times=N] [evaluation=STEP] [busy_ms=N [in=N] [out=N] [queue=N]] [dropped=N
//   [stale=N]] [gpu=NAME] [part=NAME [part_ms=N]] [own_ms=N, of each of `times`, which are of the steps from
//   first=N on [left_ms=N, that the rest of a partial step would have taken]] [left=N samples] [begun_ms=N]
//   fault STREAM ID [gen=N] [reason=X] leave STREAM finished|failed|stopped [reason=X] [model=X] checkpoint
//   STREAM step=N path=X [error=X] caught STREAM [gen=N] [error=X] end STREAM [reason=X] pod ROLE INDEX
//   [pod=X] [exit=N] [signal=N] [reason=X] absent ROLE INDEX [pod=X] [within=X] empty STREAM | again STREAM a
//   message without content; a second Hello stop REASON report
// In values, "_" stands for a blank.

#include <string>

namespace paceline::coordinator {

// The same commands, each with what the core does now (tests/support/transcript.h).
std::string run_transcript(const std::string& transcript);

}  // namespace paceline::coordinator
