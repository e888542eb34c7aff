#pragma once

// The main() of `paceline-worker --steps [COMMAND...]`: hears of a program's steps and tells the job's
// coordinator (docs/stragglers.md).

namespace paceline::agent {

// `command`: the program and its arguments, ended by null. The caller becomes it: its process, signals and
// exit code are the command's own. Another process beside it hears of its steps; what that one meets does the
// command no harm, nor does its end. Does not return where that works.
// Without a command, as in a container beside the program's: hears of the steps at PACELINE_STEPS until it is
// killed, or there is no coordinator any more.
// Returns an exit code (base/process_end.h; 127: the command can't be started). REQUIRES: no thread was
// started.
int tell_steps(int argc, char** command);

}  // namespace paceline::agent
