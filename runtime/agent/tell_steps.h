#pragma once

// The main() of `paceline-worker --steps COMMAND...`: becomes the command, beside which another process hears
// of its steps and tells the job's coordinator (docs/stragglers.md).

namespace paceline::agent {

// `command`: the program and its arguments, ended by null. The caller becomes it: its process, signals and
// exit code are the command's own, and what the other process meets does it no harm, nor does its end. Does
// not return where that works; else an exit code (base/process_end.h; 127: the command can't be started).
// REQUIRES: no thread was started.
int tell_steps(int argc, char** command);

}  // namespace paceline::agent
