#include "group.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

#include "runtime/pserver/server.h"
#include "tests/support/address_bytes.h"

namespace bench {

using namespace paceline;

collective::Group meet(const collective::Fabric& fabric, const std::string& transport, int index,
                       Meeting& meeting) {
  const std::vector<std::byte> mine = pack(fabric.address());
  collective::Group group;
  group.generation = Generation{1};
  group.rank = index;
  group.transport =
      transport == "tcp" ? collective::TransportKind::kTcp : collective::TransportKind::kSharedMemory;
  for (const std::string& text :
       meeting.exchange(std::string(reinterpret_cast<const char*>(mine.data()), mine.size()))) {
    group.members.push_back({"", unpack(std::as_bytes(std::span(text)))});
  }
  return group;
}

namespace {

void serve(collective::Fabric& fabric, const collective::Group& group, const GroupOptions& options,
           const pserver::ClientOptions& cut, const Clock& clock, Meeting& meeting) {
  pserver::ServerOptions server_options;
  server_options.shape = cut;
  server_options.optimizer.set_learning_rate(0.125);
  server_options.units_per_step = options.mode.units_per_step();
  server_options.policy = [&](const pserver::PolicyStart& start) {
    v1::ParameterServerSpec mode = options.mode;
    mode.set_servers(cut.servers);
    return pserver::make_policy(mode, start);
  };
  auto server = pserver::Server::connect(fabric, group, server_options, clock, soon(clock));
  if (!server.ok()) die(server.status());
  meeting.barrier();
  check((*server)->run(soon(clock)));
}

}  // namespace

void member(const GroupOptions& options, int index, Meeting& meeting, const Work& work) {
  SystemClock clock;
  auto fabric = collective::Fabric::create({}, clock);
  if (!fabric.ok()) die(fabric.status());
  const collective::Group group = meet(**fabric, options.transport, index, meeting);
  const pserver::ClientOptions cut{options.shape.workers, options.shape.servers, 0};
  if (index >= cut.workers) {
    serve(**fabric, group, options, cut, clock, meeting);
    return;
  }
  const std::size_t elements = options.shape.elements();
  auto memory = (*fabric)->arena().allocate(elements * sizeof(float));
  if (!memory.ok()) die(memory.status());
  const std::span<float> gradient(reinterpret_cast<float*>(memory->data()), elements);
  std::fill(gradient.begin(), gradient.end(), 1.0F);
  std::vector<float> weights(elements, 1.0F);
  const std::vector<float> initial(elements, 1.0F);
  const tensor::ParameterLayout layout{
      .parameters = {{.name = "w", .dims = {}, .offset = 0, .count = elements, .decay = true}},
      .elements = elements,
      .trained_elements = elements};
  auto client = pserver::Client::connect(**fabric, group, cut, layout, weights, gradient, clock, soon(clock));
  if (!client.ok()) die(client.status());
  meeting.barrier();
  if (index == 0) {
    pserver::InitialState state;
    state.weights = initial;
    state.start.total_steps = options.steps;
    check((*client)->initialize(state, soon(clock)));
  }
  work(**client, clock);
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
