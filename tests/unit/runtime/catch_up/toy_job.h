#pragma once

// Members that train a vector by momentum, and a newcomer, over real links of one process.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/guarded.h"
#include "runtime/catch_up/state_receiver.h"
#include "runtime/catch_up/state_sender.h"
#include "runtime/collective/fabric.h"

namespace paceline::catch_up {

inline constexpr auto kLinked = collective::Fabric::NextView::kLinked;

// w and m, with m = 0.9 m + factor g and w -= rate m.
struct ToyState {
  explicit ToyState(std::size_t elements) : weights(elements), momentum(elements), gradient(elements) {}

  void apply(const Update& update, std::size_t begin, std::span<const float> gradients) {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      momentum[begin + i] = 0.9F * momentum[begin + i] + update.factor * gradients[i];
      weights[begin + i] -= static_cast<float>(update.learning_rate) * momentum[begin + i];
    }
  }
  // The next step, of which everything follows from its number.
  Update step() {
    ++steps;
    const Update update{steps, steps, 0.01 / static_cast<double>(steps), steps % 3 == 0 ? 0.5F : 1.0F};
    for (std::size_t i = 0; i < gradient.size(); ++i)
      gradient[i] = static_cast<float>(i % 97) - static_cast<float>(steps % 13);
    apply(update, 0, gradient);
    return update;
  }
  StateView view() const { return {weights, {momentum}, gradient}; }
  LearnedState learned() {
    return {weights, {momentum}, [this](const Update& update, std::size_t begin, std::span<const float> g) {
              apply(update, begin, g);
            }};
  }

  std::vector<float> weights, momentum, gradient;
  Step steps = 0;
};

// Rank 0 is the newcomer; the sources follow.
class ToyJob {
 public:
  explicit ToyJob(int sources, collective::TransportKind transport = collective::TransportKind::kAuto) {
    group_.generation = Generation{7};
    group_.transport = transport;
    group_.key.fill(42);
    for (int rank = 0; rank <= sources; ++rank) {
      collective::FabricOptions options;
      options.arena_bytes = std::size_t{1} << 20;
      auto fabric = collective::Fabric::create(options, clock);
      PL_CHECK(fabric.ok(), "a fabric");
      group_.members.push_back({"member " + std::to_string(rank), (*fabric)->address()});
      fabrics_.push_back(*std::move(fabric));
    }
  }

  collective::Fabric& fabric(int rank) { return *fabrics_[static_cast<std::size_t>(rank)]; }
  collective::Group group(int rank) const {
    collective::Group group = group_;
    group.rank = rank;
    return group;
  }
  std::unique_ptr<StateSender> sender(int rank) {
    return std::make_unique<StateSender>(fabric(rank), clock, group(rank));
  }
  std::unique_ptr<StateReceiver> receiver(ToyState& state) {
    return std::make_unique<StateReceiver>(
        fabric(0), clock, group(0), state.learned(),
        [this](const absl::Status& status) { news_.lock()->push_back(status); });
  }
  // The newcomer has told so much of the catch-up.
  std::vector<absl::Status> news(std::size_t count) {
    auto news =
        news_.lock_when([&](const auto& all) { return all.size() >= count; }, std::chrono::seconds(30));
    return *news;
  }
  bool told() { return !news_.lock()->empty(); }
  Deadline soon() const { return Deadline::after(clock.now(), std::chrono::seconds(30)); }

  const SystemClock clock;

 private:
  collective::Group group_;
  std::vector<std::unique_ptr<collective::Fabric>> fabrics_;
  Guarded<std::vector<absl::Status>> news_;
};

}  // namespace paceline::catch_up
