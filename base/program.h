#pragma once

// What every program of ours owes its user where the system gives no more: a line that says what is missing
// and what to do, and an exit code, never an abort.

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"

namespace paceline {

// An exception of the standard library or of another one, in words for people: what failed, what to do.
std::string exception_text(const std::exception_ptr& exception);

// Runs `body` and returns its value. An exception that leaves it becomes the line `program: what` on stderr
// and the value `failure_code`; one that leaves another thread ends the process the same way, at once. A file
// beyond its limit of size (ulimit -f) is an error of the write (EFBIG), not a signal. Where standard input,
// output or error were closed they are /dev/null: else a file of ours would take their place, and lines meant
// for a reader would get into it. Writing to such an output fails, so that who looks sees that what was asked
// for went nowhere. Once in a process, from main().
int run_main(const char* program, int failure_code, const std::function<int()>& body);

// `body`, with its exceptions as RESOURCE_EXHAUSTED: where threads are started or libraries are called that
// throw.
absl::Status without_exceptions(const std::function<absl::Status()>& body);

// RESOURCE_EXHAUSTED, with its cause, where the system would not let this process open `count` files in all.
// Raises the soft limit of descriptors as far as that needs.
absl::Status reserve_descriptors(std::size_t count);

// From now on this process ends within `limit`, whatever a library waits for: then, with a line on stderr,
// or at once when one of `signals` comes (which are unblocked for that), with `failure_code`, without its
// exit handlers and destructors. What is to be kept must be written by then. Needs no thread. The last call
// counts.
void end_within(std::chrono::seconds limit, int failure_code, std::initializer_list<int> signals = {});

// Takes end_within()'s limit back.
void end_when_ready();

}  // namespace paceline
