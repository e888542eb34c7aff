#include "runtime/nccl/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "runtime/collective/fabric.h"
#include "tests/unit/runtime/collective/conformance_world.h"

namespace paceline::nccl {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class AgreementTest : public ::testing::Test {
 protected:
  // What every rank is told.
  template <typename Ask>
  std::vector<absl::Status> ask(int size, Ask ask) {
    auto hosts = collective::make_in_process_group(size, Generation{1}, clock_);
    std::vector<absl::Status> told(hosts.size());
    collective::run_ranks(size, [&](int r) {
      Agreement agreement(*hosts[static_cast<std::size_t>(r)]);
      told[static_cast<std::size_t>(r)] = ask(agreement, r);
    });
    return told;
  }
  Deadline later() const { return Deadline::after(clock_.now(), std::chrono::seconds(60)); }

  SystemClock clock_;
};

TEST_F(AgreementTest, EveryRankHasAGpuOfItsOwnAndTheSameNccl) {
  EXPECT_THAT(ask(3,
                  [&](Agreement& a, int r) {
                    return a.on_setup(std::string("GPU-") + "abc"[r], 22809, std::nullopt, later()).status();
                  }),
              Each(absl::OkStatus()));
  EXPECT_THAT(
      ask(3,
          [&](Agreement& a, int r) {
            return a.on_setup(std::string("GPU-") + "aba"[r], 22809, std::nullopt, later()).status();
          }),
      Each(absl::FailedPreconditionError("rank 0 and rank 2 have the same GPU, which NCCL does not serve")));
  EXPECT_THAT(
      ask(3,
          [&](Agreement& a, int r) {
            return a.on_setup(std::string("GPU-") + "abc"[r], r == 1 ? 22802 : 22809, std::nullopt, later())
                .status();
          }),
      Each(absl::FailedPreconditionError("rank 1 has NCCL 2.28.2, and rank 0 2.28.9: all need the same")));
}

// What rank r says it holds: a view, and its rank in it of four.
using Held = std::vector<std::optional<std::pair<std::uint64_t, int>>>;

std::vector<std::optional<Parent>> parents_of(const Held& held) {
  std::vector<std::optional<Parent>> parents;
  for (const auto& one : held) {
    parents.emplace_back();
    if (one.has_value()) parents.back() = {.view = {one->first}, .rank = one->second, .world = 4};
  }
  return parents;
}

TEST_F(AgreementTest, RanksShrinkWhatAllHold) {
  const struct {
    Held held;
    std::vector<int> excluded;
    const char* why;
  } cases[] = {
      {{{{7, 0}}, {{7, 2}}, {{7, 3}}}, {1}, ""},
      {{{{7, 1}}, {{7, 2}}}, {0, 3}, ""},
      {{{{7, 3}}}, {0, 1, 2}, ""},
      {{{{7, 0}}, {{7, 1}}, {{7, 2}}, {{7, 3}}}, {}, "no rank has left"},
      {{{{7, 2}}, {{7, 0}}}, {}, "the ranks are in another order"},
      {{{{7, 1}}, {{7, 1}}}, {}, "the ranks are in another order"},
      {{{{7, 0}}, {{6, 1}}}, {}, "rank 1 has that of view 6, and rank 0 that of view 7"},
      {{{{7, 0}}, {}, {{7, 1}}}, {}, "rank 1 has no earlier one"},
      {{{}, {{7, 0}}}, {}, "rank 0 has no earlier one"},
      {{{}, {}}, {}, "no rank has an earlier one"},
  };
  for (const auto& c : cases) {
    const auto parents = parents_of(c.held);
    const Origin origin = origin_of(parents);
    EXPECT_EQ(origin.shrinks, !c.excluded.empty());
    EXPECT_EQ(origin.why, c.why);
    if (origin.shrinks) {
      EXPECT_EQ(origin.excluded, c.excluded);
      EXPECT_EQ(origin.view.value, 7U);
    }
    // All come to the same.
    EXPECT_THAT(ask(static_cast<int>(parents.size()),
                    [&](Agreement& a, int r) -> absl::Status {
                      const auto told = a.on_setup(str_cat("GPU-", r), 22809,
                                                   parents[static_cast<std::size_t>(r)], later());
                      if (!told.ok()) return told.status();
                      return told->shrinks == origin.shrinks && told->excluded == origin.excluded &&
                                     told->view == origin.view && told->why == origin.why
                                 ? absl::OkStatus()
                                 : absl::InternalError(told->why);
                    }),
                Each(absl::OkStatus()));
  }
}

TEST_F(AgreementTest, TheFirstRankThatDidNotShrinkIsTold) {
  const auto expect = [&](const std::vector<bool>& shrunk, std::optional<int> first) {
    EXPECT_THAT(ask(3,
                    [&](Agreement& a, int r) -> absl::Status {
                      const auto told = a.on_shrunk(shrunk[static_cast<std::size_t>(r)], later());
                      if (!told.ok()) return told.status();
                      return *told == first ? absl::OkStatus() : absl::InternalError("another");
                    }),
                Each(absl::OkStatus()));
  };
  expect({true, true, true}, std::nullopt);
  expect({true, false, false}, 1);
  expect({false, true, true}, 0);
}

TEST_F(AgreementTest, IdsAreThoseOfTheRanksThatMakeThem) {
  EXPECT_THAT(ask(5,
                  [&](Agreement& a, int r) -> absl::Status {
                    ncclUniqueId mine{};
                    mine.internal[127] = static_cast<char>('a' + r);
                    const auto ids = a.on_ids(mine, 2, later());
                    if (!ids.ok()) return ids.status();
                    std::string text;
                    for (const ncclUniqueId& id : *ids) text += id.internal[127];
                    return text == "ace" ? absl::OkStatus() : absl::InternalError(text);
                  }),
              Each(absl::OkStatus()));
}

TEST_F(AgreementTest, CallsThatDifferAreToldToAll) {
  std::byte memory[8];
  const collective::Call call{collective::Kind::kAllReduce, memory, 2, DType::kF32};
  EXPECT_THAT(ask(3, [&](Agreement& a, int) { return a.on_call(call, 7, later()); }), Each(absl::OkStatus()));
  for (const absl::Status& told : ask(3, [&](Agreement&a, int r) {
         collective::Call mine = call;
         if (r == 2) mine.dtype = DType::kI32;
         return a.on_call(mine, 7, later());
       })) {
    EXPECT_TRUE(absl::IsInvalidArgument(told));
    EXPECT_THAT(
        std::string(told.message()),
        HasSubstr("rank 2 called all_reduce of 2 I32 as its operation 7, and rank 0 all_reduce of 2 F32"));
  }
  EXPECT_THAT(
      ask(2, [&](Agreement& a, int r) { return a.on_call(call, static_cast<std::uint64_t>(r), later()); }),
      Each(absl::InvalidArgumentError("rank 1 called all_reduce of 2 F32 as its operation 1, and rank 0 "
                                      "all_reduce of 2 F32 as its operation 0")));
}

}  // namespace
}  // namespace paceline::nccl
