#include "tests/unit/runtime/nccl/nccl_world.h"

#include <array>

#include "runtime/collective/fabric.h"

namespace paceline::nccl {

using ::testing::IsEmpty;

fake_nccl::FakeNccl& fake_library() {
  static const auto get = [] {
    const std::array names{std::string(PACELINE_FAKE_NCCL)};
    return reinterpret_cast<fake_nccl::Get>(
        must(must(cuda::SharedObject::open(names)).find(fake_nccl::kGet)));
  }();
  return *get();
}

Gpu::Gpu(int ordinal)
    : context(must(cuda::Context::open(must(cuda::Driver::open(PACELINE_FAKE_CUDA)), ordinal))),
      stream(std::make_unique<cuda::Stream>(must(cuda::Stream::create(context)))) {}

NcclTest::NcclTest() {
  // A machine that is busy with other things does not make it give up.
  limits_.leaving = limits_.abort = std::chrono::seconds(60);
  cuda::fake().reset();
  cuda::fake().control().devices = 16;
  fake_library().reset();
}

NcclTest::~NcclTest() {
  cuda::fake().reset();
  fake_library().reset();
}

void NcclTest::TearDown() {
  ranks_.clear();
  fake_library().release();
  // Threads that were given up end now, and let go of what they hold.
  for (auto& gpu : gpus_) {
    gpu->stream.reset();
    until([&] { return gpu->context.use_count() == 1; });
  }
  gpus_.clear();
  EXPECT_THAT(cuda::fake().problems(), IsEmpty());
  EXPECT_THAT(fake_library().problems(), IsEmpty());
  const fake_cuda::Counts left = cuda::fake().counts();
  EXPECT_EQ(left.allocations + left.streams + left.events + left.contexts, 0U);
}

std::vector<absl::StatusOr<std::unique_ptr<NcclCommunicator>>> NcclTest::create(int size,
                                                                                const Clock& clock) {
  const auto library = must(Library::open(library_));
  while (static_cast<int>(gpus_.size()) < size)
    gpus_.push_back(std::make_unique<Gpu>(static_cast<int>(gpus_.size())));
  auto hosts = collective::make_in_process_group(size, Generation{1}, clock);
  hosts_.clear();
  for (const auto& host : hosts) hosts_.push_back(host.get());
  std::vector<absl::StatusOr<std::unique_ptr<NcclCommunicator>>> made(static_cast<std::size_t>(size));
  run_ranks(size, [&](int r) {
    const auto i = static_cast<std::size_t>(r);
    nccl::Setup setup;
    setup.library = library;
    setup.context = gpus_[i]->context;
    setup.host = std::move(hosts[i]);
    setup.limits = limits_;
    made[i] = NcclCommunicator::create(std::move(setup), clock, later(clock));
  });
  return made;
}

void NcclTest::connect(int size, const Clock& clock) {
  for (auto& made : create(size, clock)) {
    ASSERT_TRUE(made.ok()) << made.status();
    ranks_.push_back(*std::move(made));
  }
}

cuda::DeviceBuffer NcclTest::upload(int r, const std::vector<float>& values) {
  cuda::DeviceBuffer buffer = must(cuda::DeviceBuffer::create(gpu(r).context, values.size() * sizeof(float)));
  EXPECT_TRUE(gpu(r).context->enter().ok());
  EXPECT_TRUE(gpu(r).stream->to_device(buffer.address(), std::as_bytes(std::span(values))).ok());
  EXPECT_TRUE(gpu(r).stream->finish(clock_, later(clock_)).ok());
  return buffer;
}

std::vector<float> NcclTest::download(int r, const cuda::DeviceBuffer& from) {
  std::vector<float> values(from.bytes() / sizeof(float));
  EXPECT_TRUE(gpu(r).context->enter().ok());
  EXPECT_TRUE(gpu(r).stream->to_host(std::as_writable_bytes(std::span(values)), from.address()).ok());
  EXPECT_TRUE(gpu(r).stream->finish(clock_, later(clock_)).ok());
  return values;
}

}  // namespace paceline::nccl
