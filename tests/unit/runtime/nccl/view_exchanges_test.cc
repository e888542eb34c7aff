// What goes from a member's view to its next.

#include "runtime/nccl/view_exchanges.h"

#include <atomic>

#include "base/status.h"
#include "runtime/collective/fabric.h"
#include "runtime/collective/fault.h"
#include "tests/unit/runtime/nccl/nccl_world.h"
#include "tests/unit/runtime/nccl/no_queue.h"

namespace paceline::nccl {
namespace {

constexpr std::size_t kElements = 100;

class ViewExchangesTest : public NcclTest {
 protected:
  struct Member {
    std::unique_ptr<Gpu> gpu;
    std::optional<cuda::DeviceBuffer> gradient;
    NoQueue queue;
    std::unique_ptr<ViewExchanges> exchanges;
    std::unique_ptr<collective::Communicator> links;
    exchange::DeviceExchange open;
  };

  ViewExchangesTest() {
    spec_.set_bucket_bytes(64 * sizeof(float));
    spec_.set_timeout_ms(60'000);
    limits_.kept = std::chrono::seconds(3600);
    for (int m = 0; m < 3; ++m) {
      auto member = std::make_unique<Member>();
      member->gpu = std::make_unique<Gpu>(m);
      member->gradient.emplace(
          must(cuda::DeviceBuffer::create(member->gpu->context, kElements * sizeof(float))));
      member->exchanges = std::make_unique<ViewExchanges>(
          must(Library::open(library_)), Logger::none(), [this] { ++stuck_; }, limits_,
          /*least_bucket_bytes=*/1);
      members_.push_back(std::move(member));
    }
  }
  void TearDown() override {
    members_.clear();
    NcclTest::TearDown();
  }
  Member& member(int m) { return *members_[static_cast<std::size_t>(m)]; }
  fake_nccl::Counts counts() const { return fake_library().counts(); }

  // A view of these members: what each is told. The exchanges of the last view end first.
  std::vector<absl::Status> try_open(const std::vector<int>& ranks, const Clock& clock) {
    const auto size = static_cast<int>(ranks.size());
    auto links = collective::make_in_process_group(size, Generation{++view_}, clock);
    auto own = collective::make_in_process_group(size, Generation{view_}, clock);
    std::vector<absl::Status> told(ranks.size());
    run_ranks(size, [&](int r) {
      const auto i = static_cast<std::size_t>(r);
      Member& m = member(ranks[i]);
      m.open.exchange.reset();
      m.links = std::move(links[i]);
      auto opened = m.exchanges->open({.spec = spec_,
                                       .clock = clock,
                                       .links = *m.links,
                                       .own = std::move(own[i]),
                                       .queue = m.queue,
                                       .gradient = m.gradient->as<float>(),
                                       .elements = kElements,
                                       .behind = {}},
                                      *m.gpu->stream, later(clock));
      told[i] = opened.status();
      if (opened.ok()) m.open = *std::move(opened);
    });
    return told;
  }
  // The same, and it succeeds: what each says of how it opened.
  std::vector<std::string> open(const std::vector<int>& ranks) {
    for (const absl::Status& told : try_open(ranks, clock_)) EXPECT_TRUE(told.ok()) << told;
    std::vector<std::string> how(ranks.size());
    run_ranks(static_cast<int>(ranks.size()), [&](int r) {
      Member& m = member(ranks[static_cast<std::size_t>(r)]);
      how[static_cast<std::size_t>(r)] = m.open.how;
      EXPECT_TRUE(m.open.exchange != nullptr && step(m).ok());
    });
    return how;
  }
  absl::Status step(Member& m) {
    PL_RETURN_IF_ERROR(m.gpu->context->enter());
    PL_RETURN_IF_ERROR(m.open.exchange->begin_step(1, {}));
    PL_RETURN_IF_ERROR(m.gpu->stream->clear(m.gradient->address(), kElements * sizeof(float)));
    PL_RETURN_IF_ERROR(m.open.exchange->range_ready(0, kElements));
    return m.open.exchange->finish(later(clock_));
  }
  static std::vector<std::string> all(std::size_t count, const std::string& what) {
    return std::vector<std::string>(count, what);
  }

  v1::ExchangeSpec spec_;
  std::vector<std::unique_ptr<Member>> members_;
};

TEST_F(ViewExchangesTest, ASmallerViewsIsShrunk) {
  EXPECT_EQ(open({0, 1, 2}), all(3, "communicator made anew: no rank has an earlier one"));
  EXPECT_EQ(open({0, 2}), all(2, "communicator shrunk from view 1"));
  EXPECT_EQ(counts().inits, 3U);
  EXPECT_EQ(counts().shrinks, 2U);
  EXPECT_EQ(counts().aborts, 2U);
  // Member 1 comes back, with what it kept.
  EXPECT_EQ(open({0, 1, 2}),
            all(3, "communicator made anew: rank 1 has that of view 1, and rank 0 that of view 2"));
  EXPECT_EQ(counts().inits, 6U);
  EXPECT_EQ(counts().communicators, 3U);
}

TEST_F(ViewExchangesTest, KeptCommunicatorEndsWithItsOwner) {
  open({0, 1, 2});
  for (auto& m : members_) m->open.exchange.reset();
  EXPECT_EQ(counts().communicators, 3U) << "kept";
  member(0).exchanges.reset();
  EXPECT_EQ(counts().communicators, 2U);
  EXPECT_EQ(counts().aborts, 1U);
}

// As where a hook is the last to let go of it.
TEST_F(ViewExchangesTest, AnExchangeMayEndAfterIt) {
  open({0, 1, 2});
  member(0).exchanges.reset();
  EXPECT_EQ(counts().communicators, 3U);
  member(0).open.exchange.reset();
  EXPECT_EQ(counts().communicators, 2U);
}

// Also where the one before it ends after it.
TEST_F(ViewExchangesTest, KeptCommunicatorIsTheLastViews) {
  open({0, 1, 2});
  const auto links = std::move(member(0).links);
  auto late = std::move(member(0).open.exchange);
  EXPECT_EQ(open({0, 1, 2}), all(3, "communicator made anew: rank 0 has no earlier one"));
  member(0).open.exchange.reset();
  late.reset();
  EXPECT_EQ(open({0, 2}), all(2, "communicator shrunk from view 2"));
}

// By an error, or because it comes to no end by its deadline (which may then be that of others, too): the
// links stay, and what is told says what may help.
TEST_F(ViewExchangesTest, FailedOpeningLeavesNothing) {
  for (const bool late : {false, true}) {
    fake_library().control().late = [late](fake_nccl::Phase phase, int rank) {
      if (phase != fake_nccl::Phase::kInit || rank != 1) return ncclNumResults;
      return late ? ncclInProgress : ncclSystemError;
    };
    const std::size_t before = counts().inits;
    std::optional<std::jthread> past_deadline;
    if (late) {
      past_deadline.emplace([&] {
        until([&] { return counts().inits == before + 3; });
        still_.advance(std::chrono::seconds(61));
      });
    }
    const auto told = try_open({0, 1, 2}, still_);
    past_deadline.reset();
    EXPECT_EQ(told[1].code(), late ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(told[1].message()),
                ::testing::AllOf(::testing::StartsWith("NCCL's communicator could not be opened: rank "),
                                 ::testing::HasSubstr("; NCCL_DEBUG=INFO in the members' environment ")));
    for (const absl::Status& one : told)
      EXPECT_TRUE(late || one.ok() || collective::faulty_rank(one) == 1) << one;
    for (auto& m : members_) {
      EXPECT_TRUE(m->links->closed().ok()) << m->links->closed();
      m->open.exchange.reset();
      m->exchanges->let_go();
    }
    EXPECT_EQ(counts().communicators, 0U);
  }
  fake_library().control().late = nullptr;
  EXPECT_EQ(open({0, 1, 2}), all(3, "communicator made anew: no rank has an earlier one"));
  EXPECT_EQ(stuck_, 0);
}

// Nor its stream and events.
TEST_F(ViewExchangesTest, NothingStaysOfWhatCanNotBeKept) {
  std::atomic<bool> fails{false};
  fake_library().control().late = [&](fake_nccl::Phase, int) {
    return fails ? ncclRemoteError : ncclNumResults;
  };
  open({0});
  fails = true;
  until([] { return fake_library().counts().communicators == 0; });
  member(0).open.exchange.reset();
  EXPECT_EQ(cuda::fake().counts().events, 0U);
  EXPECT_EQ(cuda::fake().counts().streams, 3U) << "the test's";
  fake_library().control().late = nullptr;
}

}  // namespace
}  // namespace paceline::nccl
