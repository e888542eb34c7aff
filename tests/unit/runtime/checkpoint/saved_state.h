#pragma once

// Checkpoints whose every byte is known from their step, and what crashes leave of them.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "tests/unit/runtime/checkpoint/memory_file_store.h"

namespace paceline::checkpoint {

inline constexpr const char* kFolder = "runs/job/checkpoints";

// The state of a job at a step: every byte depends on the step.
struct State {
  explicit State(std::int64_t step) : weights(50), moments(20) {
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] = static_cast<float>(step) + static_cast<float>(i) / 64;
    for (std::size_t i = 0; i < moments.size(); ++i) moments[i] = -weights[i];
    snapshot.progress = {.step = step,
                         .ledger_position = step * 64,
                         .schedule_step = step,
                         .seed = ~std::uint64_t{0},
                         .rng_position = 17,
                         .spec_hash = "abc"};
    snapshot.tensors = {tensor_view<float>("weights", DType::kF32, {50}, weights),
                        tensor_view<float>("optimizer/momentum", DType::kF32, {4, 5}, moments)};
  }
  std::vector<float> weights, moments;
  Snapshot snapshot;
};

// Of a part of the checkpoint of a step: longer with every step, never alike.
inline std::string part_content(std::int64_t step, std::string_view name) {
  std::string content;
  for (std::int64_t i = 0; i < 60 + step % 7; ++i) content += static_cast<char>(step * 31 + i * i);
  return content.append(name);
}

inline std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline const std::vector<std::string> kNoParts, kTwoParts = {"table-deep", "table-wide"};

// A checkpoint with these parts, written by turns in pieces.
inline absl::Status save(CheckpointStore& store, const Snapshot& snapshot,
                         const std::vector<std::string>& parts) {
  PL_ASSIGN_OR_RETURN(const auto writer, store.begin());
  std::vector<std::unique_ptr<PartWriter>> open;
  for (const std::string& name : parts) {
    PL_ASSIGN_OR_RETURN(auto part, writer->begin_part(name));
    open.push_back(std::move(part));
  }
  for (const bool first : {true, false}) {
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const std::string content = part_content(snapshot.progress.step, parts[k]);
      const std::string_view half =
          first ? std::string_view(content).substr(0, 40) : std::string_view(content).substr(40);
      PL_RETURN_IF_ERROR(open[k]->append(bytes(half)));
    }
  }
  std::vector<FileEntry> entries;
  for (const auto& part : open) {
    PL_ASSIGN_OR_RETURN(const FileEntry entry, part->finish());
    entries.push_back(entry);
  }
  return writer->finish(snapshot, entries);
}

// A store that keeps some checkpoints, with those of these steps, and its files.
struct Stored {
  explicit Stored(std::int64_t keep, std::initializer_list<std::int64_t> steps = {},
                  const std::vector<std::string>& parts = kNoParts)
      : store(files, kFolder, keep) {
    for (const std::int64_t step : steps) EXPECT_TRUE(save(store, State(step).snapshot, parts).ok());
  }
  MemoryFileStore files;
  CheckpointStore store;
};

// Read in pieces of 7 bytes.
inline absl::StatusOr<std::string> read_part(const CheckpointStore& store, const LoadedCheckpoint& loaded,
                                             std::string_view name) {
  PL_ASSIGN_OR_RETURN(const auto part, store.open_part(loaded, name));
  std::string content;
  while (part->left() > 0) {
    std::string piece(static_cast<std::size_t>(std::min<std::uint64_t>(7, part->left())), '?');
    PL_RETURN_IF_ERROR(part->read(std::as_writable_bytes(std::span(piece))));
    content += piece;
  }
  return content;
}

// The step that `files` hold, with everything in it checked; -1 where there is none.
inline std::int64_t loaded_step(FileStore& files, const std::vector<std::string>& parts = kNoParts) {
  const CheckpointStore store(files, kFolder, 3);
  const auto loaded = store.load_latest();
  if (!loaded.ok()) {
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kNotFound) << loaded.status();
    return -1;
  }
  const State expected(loaded->progress.step);
  EXPECT_EQ(loaded->progress.ledger_position, expected.snapshot.progress.ledger_position);
  EXPECT_EQ(loaded->progress.schedule_step, expected.snapshot.progress.schedule_step);
  EXPECT_EQ(loaded->progress.seed, ~std::uint64_t{0});
  EXPECT_EQ(loaded->progress.rng_position, 17u);
  EXPECT_EQ(loaded->progress.spec_hash, "abc");
  std::vector<float> weights(50), moments(20);
  EXPECT_TRUE(loaded->copy_to("weights", DType::kF32, std::as_writable_bytes(std::span(weights))).ok());
  EXPECT_TRUE(
      loaded->copy_to("optimizer/momentum", DType::kF32, std::as_writable_bytes(std::span(moments))).ok());
  EXPECT_EQ(weights, expected.weights);
  EXPECT_EQ(moments, expected.moments);
  EXPECT_EQ(loaded->parts.size(), parts.size());
  for (const std::string& name : parts) {
    const auto content = read_part(store, *loaded, name);
    EXPECT_TRUE(content.ok()) << content.status();
    EXPECT_EQ(content.value_or(""), part_content(loaded->progress.step, name));
  }
  return loaded->progress.step;
}

inline std::vector<std::string> names(const FileStore& files) {
  return files.list(kFolder).value();
}

// Crashes before, at and inside every operation of a save: what a killed process or a cut-off machine leaves
// holds a complete checkpoint, and saving goes on from there.
inline void crash_everywhere(std::int64_t keep, const std::vector<std::int64_t>& before, std::int64_t next,
                             const std::vector<std::string>& parts = kNoParts) {
  MemoryFileStore probe;
  CheckpointStore probing(probe, kFolder, keep);
  for (const std::int64_t step : before) ASSERT_TRUE(save(probing, State(step).snapshot, parts).ok());
  const std::int64_t first = probe.operations();
  ASSERT_TRUE(save(probing, State(next).snapshot, parts).ok());
  const std::int64_t count = probe.operations() - first;
  const std::int64_t previous = before.empty() ? -1 : before.back();
  ASSERT_GT(count, 6);

  for (std::int64_t n = 0; n <= count; ++n) {
    for (const std::uint64_t torn : {0, 1, 7, 100, 400, 100000}) {
      MemoryFileStore files;
      CheckpointStore store(files, kFolder, keep);
      for (const std::int64_t step : before) ASSERT_TRUE(save(store, State(step).snapshot, parts).ok());
      files.settle();
      files.crash_at(n, torn);
      const bool saved = save(store, State(next).snapshot, parts).ok();
      for (std::uint64_t seed = 0; seed <= 6; ++seed) {
        SCOPED_TRACE(str_cat("operation ", n, " of ", count, ", torn after ", torn, " bytes, seed ", seed));
        Rng rng(seed, static_cast<std::uint64_t>(n));
        const auto left = seed == 0 ? files.after_kill() : files.after_power_cut(rng);
        const std::int64_t step = loaded_step(*left, parts);
        EXPECT_TRUE(step == next || (!saved && step == previous)) << "found " << step;
        CheckpointStore again(*left, kFolder, keep);
        EXPECT_TRUE(step < 0 || !again.newest()->empty()) << "a training that does not resume sees it";
        EXPECT_TRUE(save(again, State(next + 1).snapshot, parts).ok());
        EXPECT_EQ(loaded_step(*left, parts), next + 1);
        EXPECT_LE(names(*left).size(), static_cast<std::size_t>(keep)) << "leftovers are removed";
        if (keep == 1) continue;
        ASSERT_TRUE(left->remove(checkpoint_path(kFolder, next + 1)).ok());
        EXPECT_EQ(loaded_step(*left, parts), step) << "the one before it stays";
      }
    }
  }
}

}  // namespace paceline::checkpoint
