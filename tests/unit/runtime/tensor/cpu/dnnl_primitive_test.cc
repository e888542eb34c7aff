#include "runtime/tensor/cpu/dnnl_primitive.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <new>

namespace paceline::tensor::cpu {
namespace {

// It would write its code to address 0, and a crash has no words.
TEST(DnnlGuard, NoPrimitiveIsTriedWithoutRoomForItsCode) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer maps memory of its own meanwhile";
#endif
  bool made = false;
  ASSERT_TRUE(dnnl_guard([&] { made = true; }).ok());
  EXPECT_TRUE(made);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit none{1 << 20, before.rlim_max};  // less than is mapped already
  bool tried = false;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &none), 0);
  const absl::Status status = dnnl_guard([&] { tried = true; });
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_FALSE(tried);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("ulimit -v"), absl::string_view::npos) << status;
}

TEST(DnnlGuard, ExceptionOfOneDnnlIsAStatus) {
  const auto says = [](dnnl_status_t what) {
    return dnnl_guard([what] { throw dnnl::error(what, "could not"); }).code();
  };
  EXPECT_EQ(says(dnnl_out_of_memory), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(says(dnnl_unimplemented), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(dnnl_guard([] { throw std::bad_alloc(); }).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace paceline::tensor::cpu
