// bench_pserver shm|tcp WORKERS SERVERS BYTES STEPS
//     synchronous training by parameter servers with a gradient of BYTES and SGD, nothing computed: the
//     nanoseconds of worker 0's steps, each a push and a pull of all workers
// bench_pserver copy PROCESSES BYTES STEPS
//     each process copies BYTES: the nanoseconds of process 0's copies
// bench_pserver loopback WORKERS SERVERS BYTES STEPS
//     the same bytes between the same processes by plain TCP connections: the nanoseconds of worker 0's
//     rounds

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "processes.h"
#include "runtime/pserver/client.h"
#include "runtime/pserver/server.h"
#include "runtime/transport/socket.h"
#include "tests/support/address_bytes.h"

namespace {

using namespace paceline;

struct Shape {
  int workers = 1, servers = 1;
  std::size_t bytes = 0;
  int steps = 1;
};

[[noreturn]] void die(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  ::_exit(1);
}

void check(const absl::Status& status) {
  if (!status.ok()) die(status);
}

Deadline soon(const Clock& clock) {
  return Deadline::after(clock.now(), std::chrono::seconds(120));
}

void work(pserver::Client& client, const Clock& clock, bool first, const Shape& shape, std::size_t elements,
          std::span<const float> initial) {
  if (first) {
    pserver::InitialState state;
    state.weights = initial;
    state.start.total_steps = shape.steps;
    check(client.initialize(state, soon(clock)));
  }
  std::vector<long long> times;
  times.reserve(static_cast<std::size_t>(shape.steps));
  long long last = 0;
  while (true) {
    const auto turn = client.wait_turn(soon(clock));
    if (!turn.ok()) die(turn.status());
    const long long now = bench::now_ns();
    if (last != 0) times.push_back(now - last);
    if (turn->finished) break;
    last = now;
    check(client.push(0, elements));
    check(client.commit({}));
  }
  check(client.leave());
  if (first) bench::print(times);
}

void member(const std::string& transport, const Shape& shape, int index, bench::Meeting& meeting) {
  SystemClock clock;
  auto fabric = collective::Fabric::create({}, clock);
  if (!fabric.ok()) die(fabric.status());
  const std::vector<std::byte> mine = testing::pack((*fabric)->address());
  collective::Group group;
  group.generation = Generation{1};
  group.rank = index;
  group.transport =
      transport == "tcp" ? collective::TransportKind::kTcp : collective::TransportKind::kSharedMemory;
  for (const std::string& text :
       meeting.exchange(std::string(reinterpret_cast<const char*>(mine.data()), mine.size()))) {
    group.members.push_back({"", testing::unpack(std::as_bytes(std::span(text)))});
  }
  const pserver::ClientOptions cut{shape.workers, shape.servers, 0};
  const std::size_t elements = shape.bytes / sizeof(float);
  if (index >= shape.workers) {
    pserver::ServerOptions options;
    options.shape = cut;
    options.optimizer.set_learning_rate(0.125);
    options.units_per_step = shape.workers;
    options.policy = [&](const pserver::PolicyStart& start) {
      v1::ParameterServerSpec mode;
      mode.set_workers(shape.workers);
      mode.set_servers(shape.servers);
      mode.set_gradients_per_step(shape.workers);
      mode.set_units_per_step(shape.workers);
      return pserver::make_policy(mode, start);
    };
    auto server = pserver::Server::connect(**fabric, group, options, clock, soon(clock));
    if (!server.ok()) die(server.status());
    check((*server)->run(soon(clock)));
    return;
  }
  auto memory = (*fabric)->arena().allocate(elements * sizeof(float));
  if (!memory.ok()) die(memory.status());
  const std::span<float> gradient(reinterpret_cast<float*>(memory->data()), elements);
  std::fill(gradient.begin(), gradient.end(), 1.0F);
  std::vector<float> weights(elements, 1.0F), initial(elements, 1.0F);
  const tensor::ParameterLayout layout{
      .parameters = {{.name = "w", .dims = {}, .offset = 0, .count = elements, .decay = true}},
      .elements = elements,
      .trained_elements = elements};
  auto client = pserver::Client::connect(**fabric, group, cut, layout, weights, gradient, clock, soon(clock));
  if (!client.ok()) die(client.status());
  work(**client, clock, index == 0, shape, elements, initial);
}

void copy(const Shape& shape, int index, bench::Meeting& meeting) {
  std::vector<char> from(shape.bytes, 1), to(shape.bytes, 2);
  std::vector<long long> times;
  meeting.barrier();
  for (int step = 0; step < shape.steps; ++step) {
    const long long begin = bench::now_ns();
    std::memcpy(to.data(), from.data(), shape.bytes);
    asm volatile("" : : "r"(to.data()) : "memory");
    times.push_back(bench::now_ns() - begin);
  }
  if (index == 0) bench::print(times);
}

// ---- plain connections ----

void move_all(std::vector<UniqueFd>& sockets, std::vector<std::vector<char>>& memory, bool sends) {
  std::vector<std::size_t> done(sockets.size());
  std::vector<pollfd> polled;
  for (std::size_t left = sockets.size(); left > 0;) {
    polled.clear();
    for (std::size_t k = 0; k < sockets.size(); ++k) {
      const bool whole = done[k] == memory[k].size();
      polled.push_back({whole ? -1 : sockets[k].get(), static_cast<short>(sends ? POLLOUT : POLLIN), 0});
    }
    constexpr int kLimitMs = 10'000;
    if (::poll(polled.data(), polled.size(), kLimitMs) <= 0) die(absl::DeadlineExceededError("a plain link"));
    for (std::size_t k = 0; k < sockets.size(); ++k) {
      if (polled[k].revents == 0) continue;
      char* const at = memory[k].data() + done[k];
      const std::size_t rest = memory[k].size() - done[k];
      const ssize_t moved = sends ? ::send(sockets[k].get(), at, rest, MSG_NOSIGNAL | MSG_DONTWAIT)
                                  : ::recv(sockets[k].get(), at, rest, MSG_DONTWAIT);
      if (moved <= 0) die(absl::UnavailableError("a plain link broke"));
      done[k] += static_cast<std::size_t>(moved);
      if (done[k] == memory[k].size()) --left;
    }
  }
}

void loopback(const Shape& shape, int index, bench::Meeting& meeting) {
  SystemClock clock;
  auto listener = transport::listen_tcp("127.0.0.1");
  if (!listener.ok()) die(listener.status());
  const auto ports = meeting.exchange(std::to_string(listener->port));
  const bool worker = index < shape.workers;
  std::vector<UniqueFd> sockets;
  if (worker) {
    for (int s = 0; s < shape.servers; ++s) {
      const std::string port = ports[static_cast<std::size_t>(shape.workers + s)].c_str();
      auto socket = transport::connect_tcp("127.0.0.1:" + port, clock, soon(clock));
      if (!socket.ok()) die(socket.status());
      sockets.push_back(*std::move(socket));
    }
  }
  while (!worker && sockets.size() < static_cast<std::size_t>(shape.workers)) {
    check(transport::wait_for(listener->fd.get(), POLLIN, clock, soon(clock)));
    auto socket = transport::accept_one(listener->fd.get());
    if (!socket.ok()) die(socket.status());
    if (socket->valid()) sockets.push_back(*std::move(socket));
  }
  for (const UniqueFd& socket : sockets) transport::tune_tcp(socket.get());
  const std::size_t part = shape.bytes / static_cast<std::size_t>(shape.servers);
  std::vector<std::vector<char>> memory(sockets.size(), std::vector<char>(part, 1));
  std::vector<long long> times;
  for (int step = 0; step < shape.steps; ++step) {
    const long long begin = bench::now_ns();
    move_all(sockets, memory, worker);
    move_all(sockets, memory, !worker);
    times.push_back(bench::now_ns() - begin);
  }
  if (index == 0) bench::print(times);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const auto number = [&](int k) { return std::atoll(argv[k]); };
  if (what == "copy" && argc == 5) {
    const Shape shape{static_cast<int>(number(2)), 0, static_cast<std::size_t>(number(3)),
                      static_cast<int>(number(4))};
    return bench::run(shape.workers, [&](int index, bench::Meeting& m) { copy(shape, index, m); });
  }
  if ((what == "shm" || what == "tcp" || what == "loopback") && argc == 6) {
    const Shape shape{static_cast<int>(number(2)), static_cast<int>(number(3)),
                      static_cast<std::size_t>(number(4)), static_cast<int>(number(5))};
    return bench::run(shape.workers + shape.servers, [&](int index, bench::Meeting& m) {
      if (what == "loopback") {
        loopback(shape, index, m);
      } else {
        member(what, shape, index, m);
      }
    });
  }
  std::fprintf(stderr,
               "bench_pserver shm|tcp|loopback WORKERS SERVERS BYTES STEPS | copy PROCESSES BYTES STEPS\n");
  return 2;
}
