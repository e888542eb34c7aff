#include "runtime/data/open.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <thread>
#include <vector>

#include "base/same_files.h"
#include "base/status.h"
#include "runtime/data/array_files.h"
#include "runtime/data/checked_dataset.h"
#include "runtime/data/clicks.h"
#include "runtime/data/formats.h"
#include "runtime/data/split.h"
#include "runtime/data/token_dataset.h"

namespace paceline::data {

namespace {

using v1::DataSpec;

constexpr std::size_t kMaxFiles = 4096;
constexpr int kMaxThreads = 16;
// Of the best AUC: within about 0.002, and a quarter of a second; of many fields fewer.
constexpr std::int64_t kBestAucValues = 1 << 22, kMinBestAucDraws = 1 << 12, kMaxBestAucDraws = 1 << 16;

using FileList = std::vector<std::shared_ptr<const InputFile>>;

struct SetFiles {
  FileList inputs;
  FileList labels;
};

struct JobFiles {
  SetFiles train;
  SetFiles test;
};

// The files can't be read, or are not as they must be.
absl::Status unreadable(const absl::Status& status) {
  const bool other = status.ok() || absl::IsResourceExhausted(status);
  return other ? status : absl::DataLossError(std::string(status.message()));
}

// `paceline run` looks for them before anything starts: who gets here without runs in a pod, mostly.
absl::Status not_there(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return unreadable(status);
  return absl::DataLossError(str_cat(status.message(),
                                     "; it must lie where the member runs: in a pod it is part of the image, "
                                     "or on a volume that the template of each role but ps mounts (volumes, "
                                     "volumeMounts)"));
}

// Opens every file of the job, `threads` at a time, the training inputs, which are the largest, first.
absl::StatusOr<JobFiles> open_files(const DataSpec& spec, int threads) {
  struct Task {
    const std::string* path;
    FileList* list;
    absl::StatusOr<std::shared_ptr<const InputFile>> file = nullptr;
  };
  JobFiles files;
  std::vector<Task> tasks;
  for (const auto& path : spec.train().inputs()) tasks.push_back({&path, &files.train.inputs});
  for (const auto& path : spec.test().inputs()) tasks.push_back({&path, &files.test.inputs});
  for (const auto& path : spec.train().labels()) tasks.push_back({&path, &files.train.labels});
  for (const auto& path : spec.test().labels()) tasks.push_back({&path, &files.test.labels});
  if (tasks.size() > kMaxFiles) {
    return absl::InvalidArgumentError(str_cat(tasks.size(), " data files; allowed: at most ", kMaxFiles));
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++)
      tasks[i].file = InputFile::open(*tasks[i].path);
  };
  {
    std::vector<std::jthread> helpers;
    const std::size_t wanted =
        std::min<std::size_t>(static_cast<std::size_t>(std::clamp(threads, 1, kMaxThreads)), tasks.size());
    for (std::size_t i = 1; i < wanted; ++i) helpers.emplace_back(work);
    work();
  }
  for (Task& task : tasks) {
    if (!task.file.ok()) return not_there(task.file.status());
    const absl::Status is_data = check_is_data((*task.file)->bytes(), spec.format() == DataSpec::TEXT);
    PL_RETURN_IF_ERROR(unreadable(with_context(is_data, *task.path)));
    task.list->push_back(*std::move(task.file));
  }
  return files;
}

absl::StatusOr<Affine> affine_of(const DataSpec& spec) {
  if (!spec.has_normalization()) return Affine{};
  const auto& n = spec.normalization();
  if (!(n.deviation() > 0) || !std::isfinite(n.deviation())) {
    return absl::InvalidArgumentError(str_cat("normalize.deviation ", n.deviation(), "; allowed: above 0"));
  }
  if (n.scale() == 0 || !std::isfinite(n.scale()) || !std::isfinite(n.mean())) {
    return absl::InvalidArgumentError(str_cat("normalize.scale ", n.scale(), ", mean ", n.mean(),
                                              "; allowed: finite numbers, a scale other than 0"));
  }
  const Affine affine{static_cast<float>(n.scale() / n.deviation()),
                      static_cast<float>(-n.mean() / n.deviation())};
  if (!std::isfinite(affine.factor) || !std::isfinite(affine.offset)) {
    return absl::InvalidArgumentError(str_cat("normalize: scale / deviation is ", affine.factor,
                                              ", -mean / deviation ", affine.offset,
                                              "; allowed: finite 32-bit floats"));
  }
  return affine;
}

absl::Status override_shape(const DataSpec& spec, ArrayRows& rows) {
  if (spec.shape().empty()) return absl::OkStatus();
  SampleShape found;
  found.dims = rows.dims;
  const std::int64_t elements = found.elements();
  std::vector<std::int64_t> wanted(spec.shape().begin(), spec.shape().end());
  std::int64_t left = elements;
  for (const std::int64_t d : wanted) left = d > 0 && left % d == 0 ? left / d : 0;
  if (left != 1) {
    return absl::InvalidArgumentError(str_cat("shape ", dims_text(wanted),
                                              " doesn't fit: a sample of the files has shape ",
                                              dims_text(rows.dims), ", ", elements, " numbers"));
  }
  rows.dims = std::move(wanted);
  return absl::OkStatus();
}

absl::StatusOr<ImageAugmentation> augmentation_of(const DataSpec& spec,
                                                  const std::vector<std::int64_t>& dims) {
  const ImageAugmentation wanted{spec.augmentation().flip(), spec.augmentation().crop()};
  if (wanted.crop == 0 && !wanted.flip) return wanted;
  if (dims.size() != 3) {
    return absl::InvalidArgumentError(str_cat("augment: samples of shape ", dims_text(dims),
                                              " are not images; give shape: [channels, height, width]"));
  }
  const std::int64_t limit = std::min(dims[1], dims[2]) - 1;
  if (wanted.crop < 0 || wanted.crop > limit) {
    return absl::InvalidArgumentError(str_cat("augment.crop ", wanted.crop, "; allowed: 0 to ", limit));
  }
  return wanted;
}

char separator_of(const DataSpec& spec) {
  switch (spec.separator()) {
    case DataSpec::SEMICOLON:
      return ';';
    case DataSpec::TAB:
      return '\t';
    default:
      return ',';
  }
}

absl::StatusOr<LabelledRows> read_rows(const DataSpec& spec, const SetFiles& files) {
  switch (spec.format()) {
    case DataSpec::IDX:
      return read_idx(files.inputs, files.labels);
    case DataSpec::NPY:
      return read_npy(files.inputs, files.labels);
    case DataSpec::CIFAR10:
      return read_cifar10(files.inputs);
    default:
      return read_csv(
          files.inputs,
          {.label_column = spec.label_column(), .header = spec.header(), .separator = separator_of(spec)});
  }
}

absl::StatusOr<std::shared_ptr<const FileDataset>> open_arrays(const DataSpec& spec, const SetFiles& files,
                                                               bool training) {
  PL_ASSIGN_OR_RETURN(const Affine affine, affine_of(spec));
  absl::StatusOr<LabelledRows> read = read_rows(spec, files);
  if (!read.ok()) return unreadable(read.status());
  LabelledRows data = *std::move(read);
  PL_RETURN_IF_ERROR(override_shape(spec, data.rows));
  PL_ASSIGN_OR_RETURN(const ImageAugmentation augmentation, augmentation_of(spec, data.rows.dims));
  return make_array_dataset(std::move(data.rows), std::move(data.labels), affine,
                            training ? augmentation : ImageAugmentation{});
}

absl::StatusOr<std::shared_ptr<const FileDataset>> open_set(const DataSpec& spec, const OpenOptions& options,
                                                            const SetFiles& files, bool training) {
  const bool has_label_files = spec.format() == DataSpec::IDX || spec.format() == DataSpec::NPY;
  if (!has_label_files && !files.labels.empty()) {
    return absl::InvalidArgumentError("labels: this format keeps them in its input files; leave them out");
  }
  const bool text = spec.format() == DataSpec::TEXT;
  if (!text && spec.format() != DataSpec::TOKENS) return open_arrays(spec, files, training);
  if (options.block_size <= 0) {
    return absl::InvalidArgumentError("text and tokens need a model with a blockSize (type: gpt)");
  }
  const TokenWidth width = text                                    ? TokenWidth::kByte
                           : spec.token_type() == DataSpec::UINT32 ? TokenWidth::kUint32
                                                                   : TokenWidth::kUint16;
  auto tokens = make_token_dataset(files.inputs, width, options.block_size, options.vocabulary_size);
  if (!tokens.ok()) return unreadable(tokens.status());
  return tokens;
}

absl::StatusOr<Datasets> open_custom(const DataSpec& spec, const OpenOptions& options) {
  const auto found = options.custom.find(spec.custom().name());
  if (found == options.custom.end()) {
    std::string known;
    for (const auto& [name, factory] : options.custom) known += str_cat(known.empty() ? "" : ", ", name);
    return absl::InvalidArgumentError(
        str_cat("data.custom.name '", spec.custom().name(),
                "' isn't known to this program; known: ", known.empty() ? "none" : known));
  }
  const std::map<std::string, std::string> parameters(spec.custom().parameters().begin(),
                                                      spec.custom().parameters().end());
  absl::StatusOr<Datasets> opened = found->second(parameters, options.seed);
  if (!opened.ok()) return unreadable(opened.status());
  Datasets sets = *std::move(opened);
  if (sets.train == nullptr || sets.train->size() == 0) {
    return absl::InvalidArgumentError(
        str_cat("the custom data set '", spec.custom().name(), "' has no training samples"));
  }
  const std::string of = str_cat(" set of '", spec.custom().name(), "'");
  const ValueLimits limits{options.vocabulary_size, options.classes};
  PL_ASSIGN_OR_RETURN(sets.train, check_values(std::move(sets.train), "the training" + of, limits));
  if (sets.test != nullptr) {
    PL_ASSIGN_OR_RETURN(sets.test, check_values(std::move(sets.test), "the test" + of, limits));
  }
  return sets;
}

absl::StatusOr<Datasets> open_files_of(const DataSpec& spec, const OpenOptions& options) {
  if (spec.train().inputs().empty())
    return absl::InvalidArgumentError("data.train.inputs: no files are given");
  PL_ASSIGN_OR_RETURN(const JobFiles files, open_files(spec, options.threads));
  std::vector<std::shared_ptr<const FileDataset>> opened(1);
  PL_ASSIGN_OR_RETURN(opened[0], open_set(spec, options, files.train, true));
  if (!files.test.inputs.empty()) {
    PL_ASSIGN_OR_RETURN(opened.emplace_back(), open_set(spec, options, files.test, false));
    if (opened[1]->shape().dims != opened[0]->shape().dims) {
      return absl::InvalidArgumentError(str_cat("test samples have shape ",
                                                dims_text(opened[1]->shape().dims), ", training samples ",
                                                dims_text(opened[0]->shape().dims)));
    }
  }
  auto found = inspect(std::move(opened), options.inspected_at_once);
  if (!found.ok()) return unreadable(found.status());
  const auto inspected = *std::move(found);
  Datasets sets;
  sets.train = inspected[0];
  if (inspected.size() > 1) sets.test = inspected[1];
  const auto paths = [](const auto& inputs) {
    return std::vector<std::string>(inputs.begin(), inputs.end());
  };
  sets.warning =
      warn_of_same_files(paths(spec.train().inputs()), paths(spec.test().inputs()), spec.test_fraction() > 0);
  return sets;
}

}  // namespace

absl::StatusOr<Datasets> open_datasets(const v1::DataSpec& spec, const OpenOptions& options) {
  Datasets sets;
  if (spec.format() == DataSpec::CUSTOM) {
    PL_ASSIGN_OR_RETURN(sets, open_custom(spec, options));
  } else if (spec.format() == DataSpec::CLICKS) {
    PL_ASSIGN_OR_RETURN(const std::shared_ptr<const ClickLog> log, ClickLog::make(spec.clicks()));
    sets.train = log;
    sets.best_auc = [log] {
      return log->bayes_auc(
          std::clamp(kBestAucValues / log->shape().elements(), kMinBestAucDraws, kMaxBestAucDraws));
    };
  } else if (spec.format() >= DataSpec::IDX && spec.format() <= DataSpec::CSV) {
    PL_ASSIGN_OR_RETURN(sets, open_files_of(spec, options));
  } else {
    return absl::InvalidArgumentError(
        str_cat("data.format ", static_cast<int>(spec.format()), " isn't known"));
  }
  if (sets.test == nullptr && spec.test_fraction() != 0) {
    PL_ASSIGN_OR_RETURN(Datasets parts,
                        split_dataset(std::move(sets.train), spec.test_fraction(), options.seed));
    parts.best_auc = std::move(sets.best_auc);
    parts.warning = std::move(sets.warning);
    return parts;
  }
  return sets;
}

}  // namespace paceline::data
