#include "group.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

#include "benchmarks/pserver_programs/meet.h"

namespace bench {

using namespace paceline;

std::unique_ptr<pserver::Server> connect_server(collective::Fabric& fabric, const collective::Group& group,
                                                const pserver::ClientOptions& cut,
                                                v1::ParameterServerSpec mode, const Clock& clock) {
  mode.set_servers(cut.servers);
  pserver::ServerOptions options;
  options.shape = cut;
  options.optimizer.set_learning_rate(0.125);
  options.units_per_step = mode.units_per_step();
  options.policy = [mode](const pserver::PolicyStart& start) { return pserver::make_policy(mode, start); };
  return value_of(pserver::Server::connect(fabric, group, options, clock, soon(clock)));
}

tensor::ParameterLayout layout_of(std::size_t elements) {
  return {.parameters = {{.name = "w", .dims = {}, .offset = 0, .count = elements, .decay = true}},
          .elements = elements,
          .trained_elements = elements};
}

void member(const GroupOptions& options, int index, Meeting& meeting, const Work& work) {
  SystemClock clock;
  const auto fabric = value_of(collective::Fabric::create({}, clock));
  const collective::Group group = meet(*fabric, options.transport, index, meeting);
  const pserver::ClientOptions cut{options.shape.workers, options.shape.servers, 0};
  if (index >= cut.workers) {
    const auto server = connect_server(*fabric, group, cut, options.mode, clock);
    meeting.barrier();
    return check(server->run(soon(clock)));
  }
  const std::size_t elements = options.shape.elements();
  const auto memory = value_of(fabric->arena().allocate(elements * sizeof(float)));
  const std::span<float> gradient(reinterpret_cast<float*>(memory.data()), elements);
  std::fill(gradient.begin(), gradient.end(), 1.0F);
  std::vector<float> weights(elements, 1.0F);
  const std::vector<float> initial(elements, 1.0F);
  const auto client = value_of(pserver::Client::connect(*fabric, group, cut, layout_of(elements), weights,
                                                        gradient, clock, soon(clock)));
  meeting.barrier();
  if (index == 0) {
    pserver::InitialState state;
    state.weights = initial;
    state.start.total_steps = options.steps;
    check(client->initialize(state, soon(clock)));
  }
  work(*client, clock);
}

void die(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  ::_exit(1);
}

void check(const absl::Status& status) {
  if (!status.ok()) die(status);
}

Deadline soon(const Clock& clock) {
  return Deadline::after(clock.now(), std::chrono::seconds(120));
}

}  // namespace bench
