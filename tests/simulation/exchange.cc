#include "tests/simulation/exchange.h"

#include <algorithm>
#include <utility>

namespace paceline::simulation {

void Communicator::join(int rank, Process& process, Host node) {
  End& end = ends_[static_cast<std::size_t>(rank)];
  if (end.process != nullptr)
    trace_.fail("ranks are a permutation", name_, ": rank ", rank, " is there twice");
  end.process = &process;
  end.node = node;
  check_cut();
}

void Communicator::enter(int rank, Part part, Duration limit, Done done) {
  End& end = ends_[static_cast<std::size_t>(rank)];
  end.done = std::move(done);
  const std::size_t number = end.entered++;
  if (!end.closed.ok()) {
    return end.process->soon([self = shared_from_this(), rank] {
      self->finish(rank, self->ends_[static_cast<std::size_t>(rank)].closed);
    });
  }
  auto& parts = operations_[number];
  parts.resize(ends_.size());
  for (const std::optional<Part>& other : parts) {
    if (other && other->what != part.what)
      trace_.fail("members do the same", name_, ": rank ", rank, " enters ", part.what, ", another ",
                  other->what);
  }
  parts[static_cast<std::size_t>(rank)] = std::move(part);
  const bool all = std::ranges::all_of(parts, [](const auto& each) { return each.has_value(); });
  if (!all) {
    return end.process->after(limit, [self = shared_from_this(), rank, number] {
      const End& late = self->ends_[static_cast<std::size_t>(rank)];
      if (late.entered != number + 1 || late.over != number || !late.done) return;
      const auto size = static_cast<int>(self->ends_.size());
      self->ends_[static_cast<std::size_t>(rank)].faulty =
          (rank + size - 1) % size;  // whom it waits for in the ring
      self->close(rank, absl::DeadlineExceededError("a peer is late"), false);
    });
  }
  // Now and then the last pieces take long to some.
  const Duration most = dice_.chance(0.1) ? std::chrono::milliseconds(40) : std::chrono::milliseconds(2);
  for (int each = 0; each < static_cast<int>(ends_.size()); ++each) {
    ends_[static_cast<std::size_t>(each)].process->after(
        dice_.between(std::chrono::microseconds(50), most),
        [self = shared_from_this(), each, number] { self->complete(each, number); });
  }
}

// Bytes that can't pass are sent again and again.
void Communicator::complete(int rank, std::size_t number) {
  const End& waiting = ends_[static_cast<std::size_t>(rank)];
  if (waiting.over != number || waiting.entered != number + 1 || !waiting.closed.ok()) return;
  for (int a = 0; a < static_cast<int>(ends_.size()); ++a) {
    for (int b = 0; b < a; ++b) {
      if (!is_cut(a, b)) continue;
      return waiting.process->after(
          std::chrono::milliseconds(150),
          [self = shared_from_this(), rank, number] { self->complete(rank, number); });
    }
  }
  finish(rank, absl::OkStatus());
}

bool Communicator::is_cut(int a, int b) const {
  const End &one = ends_[static_cast<std::size_t>(a)], &other = ends_[static_cast<std::size_t>(b)];
  return one.process != nullptr && other.process != nullptr &&
         (!network_.reaches(one.node, other.node) || !network_.reaches(other.node, one.node));
}

void Communicator::finish(int rank, const absl::Status& error) {
  End& end = ends_[static_cast<std::size_t>(rank)];
  const Done done = std::exchange(end.done, nullptr);
  if (!done) return;
  std::vector<Part> parts;
  if (error.ok()) {
    for (const std::optional<Part>& each : operations_.at(end.over)) parts.push_back(*each);
    ++end.over;
  }
  done(error, end.faulty, parts);
}

void Communicator::close(int rank, const absl::Status& why, bool in_order) {
  End& end = ends_[static_cast<std::size_t>(rank)];
  if (!end.closed.ok()) return;
  end.closed = why;
  const std::size_t sent = in_order ? end.over : 0;
  if (end.process->alive()) {
    end.process->soon([self = shared_from_this(), rank, why] { self->finish(rank, why); });
  }
  const int size = static_cast<int>(ends_.size());
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    const bool neighbour = (other + 1) % size == rank || (rank + 1) % size == other;
    const int named = neighbour ? rank : static_cast<int>(dice_.between(-1, size - 1));
    break_end(other, named == other ? rank : named,
              dice_.between(std::chrono::microseconds(50), std::chrono::milliseconds(3)), sent);
  }
}

// The bytes of operations before `from` are sent already, and still arrive.
void Communicator::break_end(int rank, int faulty, Duration wait, std::size_t from) {
  End& end = ends_[static_cast<std::size_t>(rank)];
  if (end.process == nullptr) {  // it will find the peer gone as it comes
    end.closed = absl::UnavailableError("a peer is gone");
    end.faulty = faulty;
    return;
  }
  end.process->after(wait, [self = shared_from_this(), rank, faulty, from] {
    End& broken = self->ends_[static_cast<std::size_t>(rank)];
    if (!broken.closed.ok()) return;
    if (broken.over < from) return self->break_end(rank, faulty, std::chrono::milliseconds(50), from);
    broken.faulty = faulty;
    broken.closed = absl::UnavailableError("a peer is gone");
    self->finish(rank, broken.closed);
  });
}

void Communicator::check_cut() {
  for (int a = 0; a < static_cast<int>(ends_.size()); ++a) {
    for (int b = 0; b < a; ++b) {
      if (!is_cut(a, b)) continue;
      for (const int own : {a, b}) {
        const int peer = a + b - own;
        events_.after(network_.keep_alive(), [self = shared_from_this(), own, peer] {
          End& end = self->ends_[static_cast<std::size_t>(own)];
          if (!self->is_cut(own, peer) || !end.closed.ok()) return;
          end.faulty = peer;
          self->close(own, absl::UnavailableError("nothing passes"), false);
        });
      }
    }
  }
}

}  // namespace paceline::simulation
