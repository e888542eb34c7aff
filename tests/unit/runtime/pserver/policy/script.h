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

// Runs the lines of `transcript` that begin with "> " and returns it with the answers of this run after each
// of them. Other lines are dropped, but for comments (#) and blank lines.
std::string run_transcript(const std::string& transcript);

}  // namespace paceline::pserver
