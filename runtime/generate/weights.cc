#include "runtime/generate/weights.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/dtype.h"
#include "base/status.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/checkpoint/layout.h"
#include "runtime/checkpoint/spec_hash.h"
#include "runtime/generate/scorer.h"

namespace paceline::generate {

namespace {

using checkpoint::TensorView;

constexpr int kMostTries = 10;

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Who trains meanwhile removes old checkpoints, perhaps while they are read: then there are newer ones.
absl::StatusOr<checkpoint::LoadedCheckpoint> load_newest(const checkpoint::CheckpointStore& store,
                                                         const checkpoint::GoOn& go_on) {
  for (int tries = 1;; ++tries) {
    const auto newest = store.newest();
    auto loaded = store.load_latest(go_on);
    if (loaded.ok() || absl::IsCancelled(loaded.status()) || tries == kMostTries) return loaded;
    const auto now = store.newest();
    if (!newest.ok() || !now.ok() || *now == *newest) return loaded;
  }
}

// The one of that name, or the newest of the folder.
absl::StatusOr<checkpoint::LoadedCheckpoint> load(checkpoint::FileStore& files, const std::string& parent,
                                                  const std::string& name, const checkpoint::GoOn& go_on) {
  const checkpoint::CheckpointStore store(files, parent, 1);
  if (name.empty()) return load_newest(store, go_on);
  auto loaded = store.load(name, go_on);
  if (absl::IsNotFound(loaded.status()))
    return absl::NotFoundError(
        str_cat("no complete checkpoint ", parent, "/", name, ": ", loaded.status().message()));
  if (!loaded.ok()) return with_context(loaded.status(), str_cat(parent, "/", name));
  return loaded;
}

// Copies a parameter's values.
absl::Status take(const TensorView& tensor, const tensor::Parameter& parameter, std::span<float> out) {
  const auto other = [&](const std::string& found, const std::string& expected) {
    return absl::InvalidArgumentError(str_cat("tensor '", tensor.name, "' is ", found,
                                              ", the job's model has ", expected,
                                              ": it is of another model"));
  };
  if (tensor.dims != parameter.dims)
    return other(tensor::dims_text(tensor.dims), tensor::dims_text(parameter.dims));
  if (tensor.dtype == DType::kF32) {
    std::memcpy(out.data(), tensor.data.data(), out.size_bytes());
    return absl::OkStatus();
  }
  if (tensor.dtype != DType::kBF16) return other(dtype_name(tensor.dtype), "F32 or BF16");
  for (std::size_t i = 0; i < out.size(); ++i) {
    BFloat16 value;
    std::memcpy(&value.bits, tensor.data.data() + i * sizeof(value.bits), sizeof(value.bits));
    out[i] = static_cast<float>(value);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadedWeights> read_checkpoint(checkpoint::FileStore& files, const std::string& folder,
                                              const v1::TrainingSpec& spec, const checkpoint::GoOn& go_on) {
  PL_ASSIGN_OR_RETURN(const tensor::ParameterLayout layout, weights_layout(spec.model().gpt()));
  const std::string path = without_slashes(folder);
  const std::string last = path.substr(path.rfind('/') + 1);  // all of it where there is none
  const bool one = checkpoint::step_of(last) >= 0;
  const std::string parent = one ? checkpoint::folder_of(path) : path;
  PL_ASSIGN_OR_RETURN(checkpoint::LoadedCheckpoint loaded, load(files, parent, one ? last : "", go_on));
  LoadedWeights weights;
  weights.path = str_cat(parent, "/", loaded.name);
  if (loaded.progress.spec_hash != checkpoint::spec_hash(spec)) {
    return absl::InvalidArgumentError(
        str_cat(weights.path,
                " was made with another model, kind of optimizer, global batch, seed or precision than the "
                "job's"));
  }
  weights.values.resize(layout.elements);
  weights.step = loaded.progress.step;
  weights.refused = std::move(loaded.refused);
  const absl::Status copied =
      loaded.copy_to("weights", DType::kF32, std::as_writable_bytes(std::span(weights.values)));
  if (!copied.ok()) return with_context(copied, parent);
  return weights;
}

absl::StatusOr<LoadedWeights> read_model(const checkpoint::FileStore& files, const std::string& path,
                                         const v1::GptSpec& spec) {
  PL_ASSIGN_OR_RETURN(const tensor::ParameterLayout layout, weights_layout(spec));
  LoadedWeights weights;
  weights.path =
      path.ends_with(".safetensors") ? path : str_cat(without_slashes(path), "/", checkpoint::kModelFile);
  PL_ASSIGN_OR_RETURN(const checkpoint::LoadedTensors loaded,
                      checkpoint::read_safetensors(files, weights.path));
  weights.values.resize(layout.elements);
  for (const tensor::Parameter& parameter : layout.parameters) {
    const auto found = std::find_if(loaded.tensors.begin(), loaded.tensors.end(),
                                    [&](const TensorView& tensor) { return tensor.name == parameter.name; });
    if (found == loaded.tensors.end()) {
      return absl::InvalidArgumentError(str_cat(weights.path, ": there is no tensor '", parameter.name,
                                                "', which the job's model has: it is of another model"));
    }
    const absl::Status taken =
        take(*found, parameter, std::span(weights.values).subspan(parameter.offset, parameter.count));
    if (!taken.ok()) return with_context(taken, weights.path);
  }
  if (loaded.tensors.size() != layout.parameters.size()) {
    return absl::InvalidArgumentError(str_cat(weights.path, ": it has ", loaded.tensors.size(),
                                              " tensors, the job's model ", layout.parameters.size(),
                                              ": it is of another model"));
  }
  const auto step = loaded.metadata.find("step");
  if (step == loaded.metadata.end() || !absl::SimpleAtoi(step->second, &weights.step)) weights.step = -1;
  return weights;
}

}  // namespace paceline::generate
