#pragma once

// Real servers and clients of runtime/pserver in the processes of a measurement (processes.h): ranks
// [0, workers) work, the others serve. What fails ends its process, with the reason on the standard error;
// the others then end with errors of their own.

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/ids.h"
#include "processes.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/collective/fabric.h"
#include "runtime/pserver/client.h"

namespace bench {

struct Shape {
  int workers = 1, servers = 1;
  std::size_t bytes = 0;  // of a gradient
  std::size_t elements() const { return bytes / sizeof(float); }
};

struct GroupOptions {
  std::string transport;  // "shm" or "tcp"
  Shape shape;
  paceline::v1::ParameterServerSpec mode;  // its workers are the shape's
  paceline::Step steps = 1;                // after which the training has ended
};

// What a worker does with its client, until it has left. The gradient is of ones and the optimiser SGD.
using Work = std::function<void(paceline::pserver::Client& client, const paceline::Clock& clock)>;

// One member, from its start to its end. All clients are connected before worker 0 says what the servers
// hold, so that the first turns are given together.
void member(const GroupOptions& options, int index, Meeting& meeting, const Work& work);

// All processes of the meeting, by index: the first thing that they say there.
paceline::collective::Group meet(const paceline::collective::Fabric& fabric, const std::string& transport,
                                 int index, Meeting& meeting);

[[noreturn]] void die(const absl::Status& status);
void check(const absl::Status& status);
// Two minutes: nothing that is measured takes so long.
paceline::Deadline soon(const paceline::Clock& clock);

}  // namespace bench
