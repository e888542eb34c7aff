#include "runtime/nccl/library.h"

#include "tests/support/paths.h"
#include "tests/unit/runtime/nccl/nccl_world.h"

namespace paceline::nccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LibraryTest : public NcclTest {};

TEST_F(LibraryTest, VersionsThatHangOrLackCallsAreRefused) {
  const struct {
    int version;
    bool fine;
    const char* text;
  } cases[] = {{2804, false, "2.8.4"}, {22605, false, "2.26.5"},  {22702, false, "2.27.2"}, {22703, true, ""},
               {22802, true, ""},      {22803, false, "2.28.3"},  {22808, false, "2.28.8"}, {22809, true, ""},
               {23007, true, ""},      {30000, false, "3.0.0 is"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.version);
    fake_library().control().version = c.version;
    const auto library = Library::open(binary_path(PACELINE_FAKE_NCCL));
    EXPECT_EQ(library.ok(), c.fine) << library.status();
    if (c.fine) {
      EXPECT_EQ((*library)->version(), c.version);
      continue;
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(library.status()));
    EXPECT_THAT(std::string(library.status().message()),
                AllOf(HasSubstr(c.text), HasSubstr("install NCCL 2.28.9"), HasSubstr("paceline_fake_nccl")));
  }
}

TEST_F(LibraryTest, ItsAbsenceIsTold) {
  const absl::Status absent = Library::open("/nowhere/libnccl.so.2").status();
  EXPECT_TRUE(absl::IsNotFound(absent)) << absent;
  EXPECT_THAT(std::string(absent.message()),
              AllOf(HasSubstr("NCCL can't be used"), HasSubstr("nvidia-nccl-cu13")));
  const absl::Status other = Library::open(binary_path(PACELINE_FAKE_CUDA)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(other)) << other;
  EXPECT_THAT(std::string(other.message()),
              AllOf(HasSubstr("has no ncclGetVersion"), HasSubstr("nvidia-nccl-cu13")));
}

TEST_F(LibraryTest, NewerFunctionsMayBeMissing) {
  const auto all = must(Library::open(binary_path(PACELINE_FAKE_NCCL)))->calls();
  EXPECT_NE(all.ncclCommInitRankScalable, nullptr);
  EXPECT_NE(all.ncclCommShrink, nullptr);
  EXPECT_NE(all.ncclCommRevoke, nullptr);
  const auto before_revoke = must(Library::open(binary_path(PACELINE_FAKE_NCCL_NO_REVOKE)))->calls();
  EXPECT_NE(before_revoke.ncclCommShrink, nullptr);
  EXPECT_EQ(before_revoke.ncclCommRevoke, nullptr);
  const auto none = must(Library::open(binary_path(PACELINE_FAKE_NCCL_SMALL)))->calls();
  EXPECT_EQ(none.ncclCommInitRankScalable, nullptr);
  EXPECT_EQ(none.ncclCommShrink, nullptr);
  EXPECT_EQ(none.ncclCommRevoke, nullptr);
}

TEST_F(LibraryTest, ResultsAreToldApart) {
  const auto library = must(Library::open(binary_path(PACELINE_FAKE_NCCL)));
  EXPECT_TRUE(library->check(ncclSuccess, "f").ok());
  EXPECT_TRUE(library->check(ncclInProgress, "f").ok());
  EXPECT_TRUE(absl::IsInternal(library->check(ncclUnhandledCudaError, "f")));
  EXPECT_TRUE(absl::IsInternal(library->check(ncclInternalError, "f")));
  EXPECT_TRUE(absl::IsUnavailable(library->check(ncclSystemError, "f")));
  EXPECT_TRUE(absl::IsInvalidArgument(library->check(ncclInvalidArgument, "f")));
  EXPECT_TRUE(absl::IsInvalidArgument(library->check(ncclInvalidUsage, "f")));
  EXPECT_EQ(library->check(ncclRemoteError, "ncclAllReduce"),
            absl::UnavailableError("ncclAllReduce: ncclRemoteError (6): remote process exited or there was a "
                                   "network error; the last words"));
}

}  // namespace
}  // namespace paceline::nccl
