#include "controller/api/training_spec.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "controller/api/scalars.h"

namespace paceline::api {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

absl::StatusOr<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0 || (high == 0 && low == 0)) {
      return absl::InvalidArgumentError(
          str_cat("location: '%' at byte ", i, " of ", quote(text), " is not followed by two hex digits"));
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

v1::ModelSpec make_model(const Model& m) {
  v1::ModelSpec spec;
  const auto activation = static_cast<v1::Activation>(m.activation);
  switch (m.type) {
    case ModelType::kMlp: {
      v1::MlpSpec& mlp = *spec.mutable_mlp();
      mlp.mutable_hidden()->Assign(m.hidden.begin(), m.hidden.end());
      mlp.set_activation(activation);
      mlp.set_classes(m.classes);
      break;
    }
    case ModelType::kCnn: {
      v1::CnnSpec& cnn = *spec.mutable_cnn();
      cnn.mutable_channels()->Assign(m.channels.begin(), m.channels.end());
      cnn.set_kernel_size(m.kernel_size);
      cnn.mutable_hidden()->Assign(m.hidden.begin(), m.hidden.end());
      cnn.set_activation(activation);
      cnn.set_classes(m.classes);
      break;
    }
    case ModelType::kGpt: {
      v1::GptSpec& gpt = *spec.mutable_gpt();
      gpt.set_layers(m.layers);
      gpt.set_heads(m.heads);
      gpt.set_width(m.width);
      gpt.set_block_size(m.block_size);
      gpt.set_vocabulary_size(m.vocabulary_size);
      break;
    }
    case ModelType::kWideAndDeep: {
      v1::WideAndDeepSpec& wide = *spec.mutable_wide_and_deep();
      wide.set_embedding(m.embedding);
      wide.mutable_hidden()->Assign(m.hidden.begin(), m.hidden.end());
      wide.set_activation(activation);
      for (const auto& fields : m.crosses)
        wide.add_crosses()->mutable_fields()->Assign(fields.begin(), fields.end());
      break;
    }
    case ModelType::kCustom: {
      spec.mutable_custom()->set_name(m.name);
      spec.mutable_custom()->mutable_parameters()->insert(m.parameters.begin(), m.parameters.end());
      break;
    }
  }
  return spec;
}

v1::DataFiles make_files(const DataFiles& files, std::string_view base) {
  v1::DataFiles spec;
  for (const std::string& path : files.inputs) spec.add_inputs(resolve_path(base, path));
  for (const std::string& path : files.labels) spec.add_labels(resolve_path(base, path));
  return spec;
}

v1::ClicksSpec make_clicks(const Clicks& c) {
  v1::ClicksSpec spec;
  spec.set_samples(c.samples);
  spec.mutable_vocabularies()->Assign(c.vocabularies.begin(), c.vocabularies.end());
  spec.set_exponent(c.exponent);
  spec.set_click_rate(c.click_rate);
  spec.set_signal(c.signal);
  spec.set_interaction(c.interaction);
  spec.set_seed(static_cast<std::uint64_t>(c.seed));
  return spec;
}

v1::DataSpec make_data(const Data& d, std::string_view base) {
  v1::DataSpec spec;
  // The message's enumeration begins with FORMAT_UNSPECIFIED and is otherwise in our order.
  spec.set_format(static_cast<v1::DataSpec::Format>(static_cast<int>(d.format) + 1));
  if (d.format == DataFormat::kCustom) {
    spec.mutable_custom()->set_name(d.custom.name);
    spec.mutable_custom()->mutable_parameters()->insert(d.custom.parameters.begin(),
                                                        d.custom.parameters.end());
  } else if (d.format == DataFormat::kClicks) {
    *spec.mutable_clicks() = make_clicks(d.clicks);
  } else {
    *spec.mutable_train() = make_files(d.train, base);
  }
  if (d.test) *spec.mutable_test() = make_files(*d.test, base);
  spec.set_test_fraction(d.test_fraction);
  spec.set_token_type(static_cast<v1::DataSpec::TokenType>(d.token_type));
  spec.set_label_column(d.label_column);
  spec.set_header(d.header);
  spec.set_separator(static_cast<v1::DataSpec::Separator>(d.separator));
  spec.mutable_normalization()->set_scale(d.normalize.scale);
  spec.mutable_normalization()->set_mean(d.normalize.mean);
  spec.mutable_normalization()->set_deviation(d.normalize.deviation);
  spec.mutable_augmentation()->set_flip(d.augment.flip);
  spec.mutable_augmentation()->set_crop(d.augment.crop);
  spec.set_prefetch(d.prefetch);
  spec.mutable_shape()->Assign(d.shape.begin(), d.shape.end());
  return spec;
}

v1::OptimizerSpec make_optimizer(const Optimizer& o) {
  v1::OptimizerSpec spec;
  spec.set_type(static_cast<v1::OptimizerSpec::Type>(o.type));
  spec.set_learning_rate(o.learning_rate);
  spec.set_momentum(o.momentum);
  spec.set_nesterov(o.nesterov);
  spec.set_beta1(o.beta1);
  spec.set_beta2(o.beta2);
  spec.set_epsilon(o.type == OptimizerType::kAdagrad ? o.adagrad_epsilon : o.epsilon);
  spec.set_weight_decay(o.weight_decay);
  spec.set_clip_norm(o.clip_norm);
  v1::ScheduleSpec& schedule = *spec.mutable_schedule();
  schedule.set_type(static_cast<v1::ScheduleSpec::Type>(o.schedule.type));
  schedule.set_warmup_steps(o.schedule.warmup_steps);
  schedule.set_step_every(o.schedule.step_every);
  schedule.set_step_factor(o.schedule.step_factor);
  schedule.set_final_fraction(o.schedule.final_fraction);
  schedule.set_scale_by_workers(o.schedule.scale_by_workers);
  return spec;
}

v1::ExchangeSpec make_exchange(const AllReduce& a) {
  v1::ExchangeSpec spec;
  spec.set_transport(static_cast<v1::ExchangeSpec::Transport>(a.transport));
  spec.set_overlap(a.overlap);
  spec.set_bucket_bytes(a.bucket_bytes);
  spec.set_sockets_per_peer(a.sockets_per_peer);
  spec.set_algorithm(static_cast<v1::ExchangeSpec::Algorithm>(a.algorithm));
  spec.set_timeout_ms(std::llround(a.timeout_seconds * 1000));
  spec.set_max_drop_rate(a.max_drop_rate);
  return spec;
}

v1::TableSpec make_table(const char* name, const Table& t) {
  v1::TableSpec spec;
  spec.set_name(name);
  spec.set_max_rows(t.max_rows);
  spec.set_evict(static_cast<v1::TableSpec::Eviction>(t.eviction));
  const RowOptimizer& o = t.optimizer;
  v1::RowOptimizerSpec& rule = *spec.mutable_optimizer();
  rule.set_type(static_cast<v1::RowOptimizerSpec::Type>(o.type));
  rule.set_learning_rate(o.learning_rate);
  rule.set_momentum(o.momentum);
  rule.set_beta1(o.beta1);
  rule.set_beta2(o.beta2);
  rule.set_epsilon(o.type == RowOptimizerType::kAdagrad ? o.adagrad_epsilon : o.epsilon);
  rule.set_beta(o.beta);
  rule.set_l1(o.l1);
  rule.set_l2(o.l2);
  return spec;
}

v1::ParameterServerSpec make_parameter_server(const TrainingJob& job) {
  const Strategy& s = job.spec.strategy;
  const ParameterServer& p = s.parameter_server;
  v1::ParameterServerSpec spec;
  spec.set_synchronization(static_cast<v1::ParameterServerSpec::Synchronization>(s.synchronization));
  spec.set_workers(trainer_count(job));
  spec.set_servers(member_count(job) - trainer_count(job));
  spec.set_gradients_per_step(gradients_per_step(job));
  spec.set_units_per_step(units_per_step(job));
  if (s.synchronization == Synchronization::kBoundedStaleness) spec.set_staleness(p.staleness);
  if (s.synchronization == Synchronization::kAsynchronous) spec.set_delay_compensation(p.delay_compensation);
  spec.set_transport(static_cast<v1::ExchangeSpec::Transport>(p.transport));
  spec.set_overlap(p.overlap);
  spec.set_slice_bytes(p.slice_bytes);
  if (job.spec.training->model.type == ModelType::kWideAndDeep) {
    const Tables& tables = job.spec.training->model.tables;
    *spec.add_tables() = make_table("wide", tables.wide);
    *spec.add_tables() = make_table("deep", tables.deep);
  }
  spec.set_timeout_ms(std::llround(p.timeout_seconds * 1000));
  return spec;
}

}  // namespace

std::string resolve_path(std::string_view base, std::string_view path) {
  if (base.empty() && !path.starts_with('/')) return std::string(path);
  const std::string whole = path.starts_with('/') ? std::string(path) : str_cat(base, "/", path);
  std::vector<std::string_view> parts;
  for (std::size_t start = 0; start <= whole.size();) {
    const std::size_t end = std::min(whole.find('/', start), whole.size());
    const std::string_view part = std::string_view(whole).substr(start, end - start);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    start = end + 1;
  }
  std::string resolved;
  for (const std::string_view part : parts) resolved += str_cat("/", part);
  return resolved.empty() ? "/" : resolved;
}

absl::StatusOr<std::string> location_path(std::string_view location) {
  if (location.empty()) return absl::InvalidArgumentError("location: empty; give a path or file:///path");
  const std::size_t scheme_end = location.find("://");
  if (scheme_end == std::string_view::npos) return std::string(location);
  const std::string_view scheme = location.substr(0, scheme_end), rest = location.substr(scheme_end + 3);
  if (scheme != "file") {
    return absl::InvalidArgumentError(
        str_cat("location: scheme ", quote(scheme), " is not supported; give a path or file:///path"));
  }
  if (!rest.starts_with('/')) {
    return absl::InvalidArgumentError(
        str_cat("location: ", quote(location), " names a host; write file:///path, with three slashes"));
  }
  return percent_decode(rest);
}

absl::StatusOr<v1::TrainingSpec> make_training_spec(const TrainingJob& job, const RunPaths& paths) {
  if (!paths.base_folder.empty() && !paths.base_folder.starts_with('/')) {
    return absl::InvalidArgumentError(
        str_cat("job ", job_key(job), ": the base folder ", quote(paths.base_folder), " is not absolute"));
  }
  if (!job.spec.training)
    return absl::InvalidArgumentError(str_cat("job ", job_key(job), " has no spec.training"));
  const Training& t = *job.spec.training;
  v1::TrainingSpec spec;
  *spec.mutable_model() = make_model(t.model);
  *spec.mutable_data() = make_data(t.data, paths.base_folder);
  *spec.mutable_optimizer() = make_optimizer(t.optimizer);
  spec.set_global_batch_size(t.global_batch_size);
  spec.set_micro_batch_size(t.micro_batch_size);
  spec.set_steps(t.steps.value_or(0));
  spec.set_epochs(t.epochs.value_or(0));
  if (t.target) {
    const auto& [accuracy, loss, auc] = *t.target;
    spec.mutable_target()->set_metric(accuracy ? "accuracy" : auc ? "auc" : "loss");
    spec.mutable_target()->set_value(accuracy ? *accuracy : auc ? *auc : loss.value_or(0));
  }
  spec.mutable_evaluation()->set_every_steps(t.evaluation.every_steps.value_or(0));
  spec.mutable_evaluation()->set_every_epochs(t.evaluation.every_epochs.value_or(0));
  spec.mutable_evaluation()->set_batch_size(t.evaluation.batch_size);
  spec.set_precision(static_cast<v1::Precision>(t.precision));
  spec.set_recompute_activations(t.recompute_activations);
  spec.set_seed(static_cast<std::uint64_t>(t.seed));
  spec.set_encrypts_links(job.spec.strategy.encryption == Encryption::kTls);
  *spec.mutable_exchange() = make_exchange(job.spec.strategy.all_reduce);
  if (job.spec.strategy.type == StrategyType::kParameterServer)
    *spec.mutable_parameter_server() = make_parameter_server(job);
  const Checkpoint& c = job.spec.checkpoint;
  v1::CheckpointSpec& checkpoint = *spec.mutable_checkpoint();
  checkpoint.set_directory(paths.checkpoint_directory);
  if (!c.location.empty()) {
    PL_ASSIGN_OR_RETURN(const std::string location, location_path(c.location));
    checkpoint.set_directory(resolve_path(paths.base_folder, location));
  }
  checkpoint.set_every_steps(c.every_steps);
  checkpoint.set_every_seconds(c.every_seconds);
  checkpoint.set_keep(c.keep);
  checkpoint.set_resume(paths.resume);
  checkpoint.set_model_directory(paths.model_directory);
  return spec;
}

}  // namespace paceline::api
