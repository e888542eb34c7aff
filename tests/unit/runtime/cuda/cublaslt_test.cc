#include "runtime/cuda/cublaslt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_cublaslt/matmul_test_base.h"
#include "tests/support/paths.h"

namespace paceline::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CublasLtTest : public MatMulTestBase {};

TEST_F(CublasLtTest, WithoutItTheMessageSaysHowToGetIt) {
  const absl::Status status = CublasLt::open(context_, "/nowhere/libcublasLt.so.13").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("/nowhere/libcublasLt.so.13"), HasSubstr("nvidia-cublas")));
}

TEST_F(CublasLtTest, AnotherMajorVersionIsRefused) {
  fake_library().control().version = 120801;
  const absl::Status status = CublasLt::open(context_, binary_path(PACELINE_FAKE_CUBLASLT)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("is cuBLASLt 12.8, and 13 is needed"), HasSubstr("nvidia-cublas")));
  fake_library().control().version = 139900;
  EXPECT_TRUE(CublasLt::open(context_, binary_path(PACELINE_FAKE_CUBLASLT)).ok());
}

TEST_F(CublasLtTest, AnotherLibraryIsRefused) {
  const absl::Status status = CublasLt::open(context_, binary_path(PACELINE_FAKE_CUDA)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("has no cublasLt"), HasSubstr("nvidia-cublas")));
}

TEST_F(CublasLtTest, ItMayNotStart) {
  fake_library().control().fail = [](const std::string&) { return CUBLAS_STATUS_ALLOC_FAILED; };
  const absl::Status status = CublasLt::open(context_, binary_path(PACELINE_FAKE_CUBLASLT)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  fake_library().control().fail = nullptr;
}

TEST_F(CublasLtTest, StatusesAreToldApart) {
  EXPECT_TRUE(library_->check(CUBLAS_STATUS_SUCCESS, "call").ok());
  EXPECT_TRUE(absl::IsUnimplemented(library_->check(CUBLAS_STATUS_NOT_SUPPORTED, "call")));
  EXPECT_TRUE(absl::IsUnimplemented(library_->check(CUBLAS_STATUS_ARCH_MISMATCH, "call")));
  EXPECT_EQ(library_->check(CUBLAS_STATUS_MAPPING_ERROR, "call").message(), "call: an unknown status (11)");
}

}  // namespace
}  // namespace paceline::cuda
