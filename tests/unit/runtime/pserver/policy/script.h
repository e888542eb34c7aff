#pragma once

// Scripts for the policies: text in, everything that they answer as text out.
//
//   policy MODE workers=N steps=N [gradients=N] [units=N] [staleness=N] [step=N] [below=N] [missing=A,B]
//       always first. MODE: synchronous (gradients: workers where left out), asynchronous, bounded
//       units: of a step; where left out as docs/parameter-servers.md says, with backups
//   join WORKER...      one after the other
//   commit WORKER...    the unit of its turn
//   left WORKER...
//   units               what is in the weights
//
// Gradients are written WORKER:UNIT@VERSION-READ.

#include <string>

namespace paceline::pserver {

// The same commands, each with what the policy answers now (tests/support/transcript.h).
std::string run_transcript(const std::string& transcript);

}  // namespace paceline::pserver
