#include "controller/cluster/local/pod_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace paceline::cluster {
namespace {

TEST(PodRecord, APodThatCouldNotStartIsToldItsCause) {
  const struct {
    int error;
    const char *cause, *remedy;
  } cases[] = {
      {ENOENT, "No such file or directory", "correct the command"},
      {EACCES, "Permission denied", "correct the command"},
      {EAGAIN, "Resource temporarily unavailable", "ulimit -u"},
      {EMFILE, "Too many open files", "ulimit -n"},
      {ENOMEM, "Cannot allocate memory", "memory"},
  };
  for (const auto& c : cases) {
    Pod pod;
    pod.spec.command = {"trainer"};
    take_notice(pod, {NoticeKind::kStartError, c.error, false}, {});
    EXPECT_EQ(pod.phase, PodPhase::kFailed);
    EXPECT_EQ(pod.reason, "StartError");
    EXPECT_THAT(pod.message, ::testing::AllOf(::testing::HasSubstr("'trainer'"),
                                              ::testing::HasSubstr(c.cause), ::testing::HasSubstr(c.remedy)));
  }
}

}  // namespace
}  // namespace paceline::cluster
