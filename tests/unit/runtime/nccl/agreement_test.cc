#include "runtime/nccl/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
    collective::testing::run_ranks(size, [&](int r) {
      Agreement agreement(*hosts[static_cast<std::size_t>(r)]);
      told[static_cast<std::size_t>(r)] = ask(agreement, r);
    });
    return told;
  }
  Deadline later() const { return Deadline::after(clock_.now(), std::chrono::seconds(60)); }

  SystemClock clock_;
};

TEST_F(AgreementTest, EveryRankHasAGpuOfItsOwnAndTheSameNccl) {
  EXPECT_THAT(
      ask(3, [&](Agreement& a, int r) { return a.on_setup(std::string("GPU-") + "abc"[r], 22809, later()); }),
      Each(absl::OkStatus()));
  EXPECT_THAT(
      ask(3, [&](Agreement& a, int r) { return a.on_setup(std::string("GPU-") + "aba"[r], 22809, later()); }),
      Each(absl::FailedPreconditionError("rank 0 and rank 2 have the same GPU, which NCCL does not serve")));
  EXPECT_THAT(
      ask(3,
          [&](Agreement& a, int r) {
            return a.on_setup(std::string("GPU-") + "abc"[r], r == 1 ? 22802 : 22809, later());
          }),
      Each(absl::FailedPreconditionError("rank 1 has NCCL 2.28.2, and rank 0 2.28.9: all need the same")));
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
