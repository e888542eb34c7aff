#pragma once

// Real servers and clients of runtime/pserver in the processes of a measurement (processes.h): ranks
// [0, workers) work, the others serve. What fails ends its process, with the reason on the standard error;
// the others then end with errors of their own.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"
#include "processes.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/collective/fabric.h"
#include "runtime/pserver/client.h"
#include "runtime/pserver/server.h"

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

// The server has `mode` and is connected to all.
std::unique_ptr<paceline::pserver::Server> connect_server(paceline::collective::Fabric& fabric,
                                                          const paceline::collective::Group& group,
                                                          const paceline::pserver::ClientOptions& cut,
                                                          paceline::v1::ParameterServerSpec mode,
                                                          const paceline::Clock& clock);
// The model is one dense tensor.
paceline::tensor::ParameterLayout layout_of(std::size_t elements);

[[noreturn]] void die(const absl::Status& status);
void check(const absl::Status& status);
template <typename T>
T value_of(absl::StatusOr<T> value) {
  check(value.status());
  return *std::move(value);
}
// Two minutes: nothing that is measured takes so long.
paceline::Deadline soon(const paceline::Clock& clock);

}  // namespace bench
