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

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "group.h"
#include "processes.h"
#include "runtime/pserver/client.h"
#include "runtime/transport/socket.h"

namespace {

using namespace paceline;

using bench::check;
using bench::die;
using bench::Shape;
using bench::soon;
using bench::value_of;

void work(pserver::Client& client, const Clock& clock, bool first, const Shape& shape, int steps) {
  std::vector<long long> times;
  times.reserve(static_cast<std::size_t>(steps));
  long long last = 0;
  while (true) {
    const pserver::TurnResult turn = value_of(client.wait_turn(soon(clock)));
    const long long now = bench::now_ns();
    if (last != 0) times.push_back(now - last);
    if (turn.finished) break;
    last = now;
    check(client.push(0, shape.elements()));
    check(client.commit({}));
  }
  check(client.leave());
  if (first) bench::print(times);
}

void member(const std::string& transport, const Shape& shape, int steps, int index, bench::Meeting& meeting) {
  v1::ParameterServerSpec mode;
  mode.set_workers(shape.workers);
  mode.set_gradients_per_step(shape.workers);
  mode.set_units_per_step(shape.workers);
  bench::member(
      {transport, shape, mode, steps}, index, meeting,
      [&](pserver::Client& client, const Clock& clock) { work(client, clock, index == 0, shape, steps); });
}

void copy(const Shape& shape, int steps, int index, bench::Meeting& meeting) {
  std::vector<char> from(shape.bytes, 1), to(shape.bytes, 2);
  std::vector<long long> times;
  meeting.barrier();
  for (int step = 0; step < steps; ++step) {
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

void loopback(const Shape& shape, int steps, int index, bench::Meeting& meeting) {
  SystemClock clock;
  const auto listener = value_of(transport::listen_tcp("127.0.0.1"));
  const auto ports = meeting.exchange(std::to_string(listener.port));
  const bool worker = index < shape.workers;
  std::vector<UniqueFd> sockets;
  if (worker) {
    for (int s = 0; s < shape.servers; ++s) {
      const std::string port = ports[static_cast<std::size_t>(shape.workers + s)].c_str();
      sockets.push_back(value_of(transport::connect_tcp("127.0.0.1:" + port, clock, soon(clock))));
    }
  }
  while (!worker && sockets.size() < static_cast<std::size_t>(shape.workers)) {
    check(transport::wait_for(listener.fd.get(), POLLIN, clock, soon(clock)));
    UniqueFd socket = value_of(transport::accept_one(listener.fd.get()));
    if (socket.valid()) sockets.push_back(std::move(socket));
  }
  for (const UniqueFd& socket : sockets) transport::tune_tcp(socket.get());
  const std::size_t part = shape.bytes / static_cast<std::size_t>(shape.servers);
  std::vector<std::vector<char>> memory(sockets.size(), std::vector<char>(part, 1));
  std::vector<long long> times;
  for (int step = 0; step < steps; ++step) {
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
    const Shape shape{static_cast<int>(number(2)), 0, static_cast<std::size_t>(number(3))};
    const int steps = static_cast<int>(number(4));
    return bench::run(shape.workers, [&](int index, bench::Meeting& m) { copy(shape, steps, index, m); });
  }
  if ((what == "shm" || what == "tcp" || what == "loopback") && argc == 6) {
    const Shape shape{static_cast<int>(number(2)), static_cast<int>(number(3)),
                      static_cast<std::size_t>(number(4))};
    const int steps = static_cast<int>(number(5));
    return bench::run(shape.workers + shape.servers, [&](int index, bench::Meeting& m) {
      if (what == "loopback") {
        loopback(shape, steps, index, m);
      } else {
        member(what, shape, steps, index, m);
      }
    });
  }
  std::fprintf(stderr,
               "bench_pserver shm|tcp|loopback WORKERS SERVERS BYTES STEPS | copy PROCESSES BYTES STEPS\n");
  return 2;
}
