#include "runtime/generate/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/dtype.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/checkpoint/safetensors_file.h"
#include "runtime/checkpoint/spec_hash.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/slow_files.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/checkpoint/memory_file_store.h"
#include "tests/unit/runtime/generate/tiny_gpt.h"

namespace paceline::generate {
namespace {

using checkpoint::MemoryFileStore;
using ::testing::HasSubstr;

constexpr const char* kFolder = "run/checkpoints";

class WeightsTest : public ::testing::Test {
 protected:
  WeightsTest() { *spec_.mutable_model()->mutable_gpt() = gpt_.spec; }

  void save(std::int64_t step) { save(files_, kFolder, step); }
  void save(checkpoint::FileStore& files, const std::string& folder, std::int64_t step) {
    checkpoint::Snapshot snapshot;
    snapshot.progress.step = step;
    snapshot.progress.spec_hash = checkpoint::spec_hash(spec_);
    std::vector<float> values = gpt_.weights;
    values[0] = static_cast<float>(step);
    snapshot.tensors = {checkpoint::tensor_view<float>("weights", DType::kF32,
                                                       {static_cast<std::int64_t>(values.size())}, values)};
    const absl::Status saved = checkpoint::CheckpointStore(files, folder, 5).save(snapshot);
    ASSERT_TRUE(saved.ok()) << saved;
  }

  // One tensor for each parameter, in type `T`, of `dtype`; without the last `missing`.
  template <typename T>
  void write_model(DType dtype, std::size_t missing = 0, bool more = false) {
    std::vector<std::vector<T>> values;
    std::vector<checkpoint::TensorView> tensors;
    values.reserve(gpt_.layout.parameters.size());
    for (const tensor::Parameter& parameter : gpt_.layout.parameters) {
      auto& converted = values.emplace_back();
      for (std::size_t i = 0; i < parameter.count; ++i)
        converted.push_back(static_cast<T>(gpt_.weights[parameter.offset + i]));
      tensors.push_back(checkpoint::tensor_view<T>(parameter.name, dtype, parameter.dims, converted));
    }
    tensors.resize(tensors.size() - missing);
    if (more) tensors.push_back(checkpoint::tensor_view<T>("more", dtype, {13, 8}, values[0]));
    const absl::Status written =
        checkpoint::write_safetensors(files_, "run/model/model.safetensors", tensors, {{"step", "40"}});
    ASSERT_TRUE(written.ok()) << written;
  }

  void expect_error(const absl::Status& status, absl::StatusCode code, const char* words) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }

  // Changes one byte in the middle of a file.
  void damage(const std::string& path) {
    auto bytes = files_.read_file(path, 1 << 20).value();
    bytes[bytes.size() / 2] ^= std::byte{1};
    const std::span<const std::byte> piece = bytes;
    ASSERT_TRUE(files_.write_file(path, std::span(&piece, 1)).ok());
  }

  TinyGpt gpt_;
  v1::TrainingSpec spec_;
  MemoryFileStore files_;
};

TEST_F(WeightsTest, AreTheNewestCheckpointsOrTheNamedOnes) {
  save(10);
  save(20);
  for (const auto& [folder, step] : {std::pair{std::string(kFolder), 20},
                                     {str_cat(kFolder, "/"), 20},
                                     {str_cat(kFolder, "/step-000000010"), 10},
                                     {str_cat(kFolder, "/step-000000010/"), 10}}) {
    const auto weights = read_checkpoint(files_, folder, spec_);
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_EQ(weights->step, step);
    EXPECT_EQ(weights->path, str_cat(kFolder, "/step-0000000", step));
    EXPECT_EQ(weights->values[0], static_cast<float>(step));
    EXPECT_EQ(weights->values[1], gpt_.weights[1]);
    EXPECT_EQ(weights->values.size(), gpt_.weights.size());
  }
}

TEST_F(WeightsTest, DamagedCheckpointsArePassedOverOrAnError) {
  save(10);
  save(20);
  damage(str_cat(kFolder, "/step-000000020/state.safetensors"));
  const auto weights = read_checkpoint(files_, kFolder, spec_);
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->step, 10);
  ASSERT_EQ(weights->refused.size(), 1U);
  EXPECT_THAT(weights->refused[0], HasSubstr("step-000000020"));
  expect_error(read_checkpoint(files_, str_cat(kFolder, "/step-000000020"), spec_).status(),
               absl::StatusCode::kDataLoss,
               "run/checkpoints/step-000000020: state.safetensors: its checksum");
  damage(str_cat(kFolder, "/step-000000010/state.safetensors"));
  expect_error(read_checkpoint(files_, kFolder, spec_).status(), absl::StatusCode::kDataLoss, "is damaged");
}

// The newest one goes, since there is a newer one, when it is about to be read; at every file of it.
TEST_F(WeightsTest, CheckpointThatReplacesTheNewestIsRead) {
  for (const char* file : {"manifest.json", "state.safetensors"}) {
    const TemporaryFolder folder;
    std::function<void()> replace;
    SlowFiles files([&](const std::string& path) {
      if (replace != nullptr && path.ends_with(str_cat("step-000000010/", file)))
        std::exchange(replace, nullptr)();
    });
    save(files, folder.path(), 10);
    replace = [&] {
      ASSERT_TRUE(files.remove(str_cat(folder.path(), "/step-000000010")).ok());
      save(files, folder.path(), 20);
    };
    const auto weights = read_checkpoint(files, folder.path(), spec_);
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_EQ(weights->step, 20);
    EXPECT_EQ(replace, nullptr);
  }
}

TEST_F(WeightsTest, CheckpointsThatAreNotThereOrOfAnotherJob) {
  expect_error(read_checkpoint(files_, kFolder, spec_).status(), absl::StatusCode::kNotFound,
               "no complete checkpoint in run/checkpoints");
  expect_error(read_checkpoint(files_, str_cat(kFolder, "/step-000000030"), spec_).status(),
               absl::StatusCode::kNotFound, "no complete checkpoint run/checkpoints/step-000000030");
  save(10);
  spec_.set_seed(5);
  expect_error(read_checkpoint(files_, kFolder, spec_).status(), absl::StatusCode::kInvalidArgument,
               "step-000000010 was made with another model");
}

TEST_F(WeightsTest, ReadingEndsWhenAskedToStop) {
  save(10);
  const auto stopped =
      read_checkpoint(files_, kFolder, spec_, [] { return absl::CancelledError("no more"); });
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
}

TEST_F(WeightsTest, AreTheModels) {
  for (const char* path : {"run/model", "run/model/", "run/model/model.safetensors"}) {
    write_model<float>(DType::kF32);
    const auto weights = read_model(files_, path, gpt_.spec);
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_EQ(weights->step, 40);
    EXPECT_EQ(weights->path, "run/model/model.safetensors");
    for (const tensor::Parameter& parameter : gpt_.layout.parameters) {
      EXPECT_EQ(std::memcmp(weights->values.data() + parameter.offset, gpt_.weights.data() + parameter.offset,
                            parameter.count * sizeof(float)),
                0)
          << parameter.name;
    }
  }
  write_model<BFloat16>(DType::kBF16);
  const auto weights = read_model(files_, "run/model", gpt_.spec);
  ASSERT_TRUE(weights.ok()) << weights.status();
  for (const tensor::Parameter& parameter : gpt_.layout.parameters) {
    for (std::size_t i = parameter.offset; i < parameter.offset + parameter.count; ++i)
      ASSERT_EQ(weights->values[i], static_cast<float>(BFloat16(gpt_.weights[i])));
  }
}

// A file of `bytes` zeros behind `header`, of which none takes room on the disk.
void write_sparse(const std::string& path, std::uint64_t length, const std::string& header,
                  std::uint64_t bytes) {
  ByteWriter begin;
  begin.u64(length);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(begin.data().data()), 8);
  file << header;
  file.close();
  std::filesystem::resize_file(path, 8 + header.size() + bytes);
}

// 256 GiB, and a length of the header that the file does not have: neither is taken.
TEST_F(WeightsTest, NoMemoryIsTakenForWhatAFileOnlySays) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/model.safetensors";
  const auto files = checkpoint::make_directory_store();
  const std::uint64_t huge = std::uint64_t{1} << 38;
  const std::string header = str_cat(R"({"tokens.weight":{"dtype":"F32","shape":[)", huge / 4,
                                     R"(],"data_offsets":[0,)", huge, "]}}");
  write_sparse(path, header.size(), header, huge);
  const std::int64_t before = bytes_of_this_thread();
  expect_error(read_model(*files, path, gpt_.spec).status(), absl::StatusCode::kInvalidArgument,
               "tensor 'tokens.weight' is {68719476736}, the job's model has {13, 8}");
  for (const std::uint64_t length : {std::uint64_t{1} << 23, checkpoint::kMaxHeaderBytes, huge, UINT64_MAX}) {
    write_sparse(path, length, "{}", 0);
    expect_error(read_model(*files, path, gpt_.spec).status(), absl::StatusCode::kDataLoss,
                 str_cat("model.safetensors: byte 0: a header of ", length, " bytes").c_str());
  }
  EXPECT_LT(bytes_of_this_thread() - before, 1 << 20);
}

TEST_F(WeightsTest, ModelsThatAreNotThereOrDamagedOrOfAnother) {
  const auto read = [&](const v1::GptSpec& spec) { return read_model(files_, "run/model", spec).status(); };
  expect_error(read(gpt_.spec), absl::StatusCode::kNotFound, "model.safetensors");
  write_model<float>(DType::kF32, 1);
  expect_error(read(gpt_.spec), absl::StatusCode::kInvalidArgument, "there is no tensor 'norm.bias'");
  write_model<float>(DType::kF32, 0, true);
  expect_error(read(gpt_.spec), absl::StatusCode::kInvalidArgument, "tensors, the job's model");
  write_model<Float16>(DType::kF16);
  expect_error(read(gpt_.spec), absl::StatusCode::kInvalidArgument, "is F16");
  write_model<float>(DType::kF32);
  v1::GptSpec larger = gpt_.spec;
  larger.set_vocabulary_size(14);
  expect_error(read(larger), absl::StatusCode::kInvalidArgument,
               "tensor 'tokens.weight' is {13, 8}, the job's model has {14, 8}");
  auto bytes = files_.read_file("run/model/model.safetensors", 1 << 20).value();
  bytes.resize(bytes.size() - 4);
  const std::span<const std::byte> piece = bytes;
  ASSERT_TRUE(files_.write_file("run/model/model.safetensors", std::span(&piece, 1)).ok());
  expect_error(read(gpt_.spec), absl::StatusCode::kDataLoss, "run/model/model.safetensors");
}

}  // namespace
}  // namespace paceline::generate
