#include "benchmarks/gpu_programs/subjects.h"

#include "runtime/cuda/attention.h"
#include "runtime/cuda/conversion.h"
#include "runtime/cuda/cross_entropy.h"
#include "runtime/cuda/elementwise.h"
#include "runtime/cuda/embedding.h"
#include "runtime/cuda/layer_norm.h"
#include "runtime/cuda/matmul.h"
#include "runtime/cuda/optimizer.h"

namespace paceline::cuda {

// They refer to each other.
struct Libraries {
  Elementwise elementwise;
  Columns columns;
  Conversion conversion;
  CrossEntropy cross_entropy;
  Attention attention;
  Embedding embedding;
  GpuOptimizer optimizer;
  std::unique_ptr<LayerNorm> layer_norm;
  std::vector<MatMul> products;
};

namespace {

constexpr DType kHalf = DType::kBF16;
constexpr auto kGelu = Elementwise::Function::kGelu;

absl::StatusOr<std::unique_ptr<Libraries>> load(const Bench& bench) {
  PL_ASSIGN_OR_RETURN(auto elementwise, Elementwise::load(bench.context()));
  PL_ASSIGN_OR_RETURN(auto columns, Columns::load(bench.context()));
  PL_ASSIGN_OR_RETURN(auto conversion, Conversion::load(bench.context()));
  PL_ASSIGN_OR_RETURN(auto cross_entropy, CrossEntropy::load(bench.context()));
  PL_ASSIGN_OR_RETURN(auto attention, Attention::load(bench.context()));
  PL_ASSIGN_OR_RETURN(auto embedding, Embedding::load(bench.context()));
  PL_ASSIGN_OR_RETURN(auto optimizer, GpuOptimizer::load(bench.context()));
  std::unique_ptr<Libraries> all(new Libraries{std::move(elementwise),
                                               std::move(columns),
                                               std::move(conversion),
                                               std::move(cross_entropy),
                                               std::move(attention),
                                               std::move(embedding),
                                               std::move(optimizer),
                                               nullptr,
                                               {}});
  PL_ASSIGN_OR_RETURN(auto layer_norm, LayerNorm::load(bench.context(), all->columns));
  all->layer_norm = std::make_unique<LayerNorm>(std::move(layer_norm));
  return all;
}

// ---- the subjects ----

// Of what memory holds up: three steps' rows, so that a launch goes through several times what an L2 cache
// holds (50 MB on an H100 or H200) and no launch finds there what the one before it left. At GPT-2's sizes
// no tensor then has less than 72 MiB, and the tokens are all different.
std::uint32_t uncached_rows(const Options& o) {
  return 3 * o.samples * o.time;
}

absl::Status add_pointwise(Bench& bench, const Libraries& kernels, const Options& o,
                           std::vector<Subject>& subjects) {
  const std::size_t rows = uncached_rows(o), wide = 4 * std::size_t{o.width}, n = rows * wide;
  const auto bytes = static_cast<double>(n * 2);
  PL_ASSIGN_OR_RETURN(void* const x, bench.values(n * 2));
  PL_ASSIGN_OR_RETURN(void* const y, bench.values(n * 2));
  PL_ASSIGN_OR_RETURN(void* const row, bench.zeros(wide * 2));
  PL_ASSIGN_OR_RETURN(void* const sums, bench.zeros(wide * 4));
  PL_ASSIGN_OR_RETURN(void* const scratch, bench.zeros(Columns::scratch_elements(rows, wide) * 4));
  subjects.push_back({"copy", 2 * bytes, 0, [=](Stream& s) { return s.copy(y, x, n * 2); }});
  subjects.push_back({"gelu", 2 * bytes, 0, [=, &kernels](Stream& s) {
                        return kernels.elementwise.apply(s, kGelu, kHalf, x, y, n);
                      }});
  subjects.push_back({"gelu backward", 3 * bytes, 0, [=, &kernels](Stream& s) {
                        return kernels.elementwise.backward(s, kGelu, kHalf, x, y, y, n);
                      }});
  subjects.push_back({"bias and gelu", 2 * bytes, 0, [=, &kernels](Stream& s) {
                        return kernels.elementwise.bias_gelu(s, kHalf, x, row, y, n, wide);
                      }});
  subjects.push_back({"add", 3 * bytes, 0,
                      [=, &kernels](Stream& s) { return kernels.elementwise.add(s, kHalf, x, y, y, n); }});
  subjects.push_back({"column sums", bytes, 0, [=, &kernels](Stream& s) {
                        return kernels.columns.sums(s, kHalf, x, static_cast<float*>(sums), false,
                                                    static_cast<float*>(scratch), rows, wide);
                      }});
  return absl::OkStatus();
}

absl::Status add_norms(Bench& bench, const Libraries& kernels, const Options& o,
                       std::vector<Subject>& subjects) {
  const std::uint32_t rows = uncached_rows(o);
  const std::size_t n = std::size_t{rows} * o.width;
  const auto bytes = static_cast<double>(n * 2);
  PL_ASSIGN_OR_RETURN(void* const x, bench.values(n * 2));
  PL_ASSIGN_OR_RETURN(void* const residual, bench.values(n * 2));
  PL_ASSIGN_OR_RETURN(void* const y, bench.values(n * 2));
  PL_ASSIGN_OR_RETURN(void* const gains, bench.values(4 * std::size_t{o.width} * 4));
  PL_ASSIGN_OR_RETURN(void* const statistics, bench.zeros(std::size_t{rows} * 8));
  PL_ASSIGN_OR_RETURN(void* const partials, bench.zeros(LayerNorm::scratch_elements(rows, o.width) * 4));
  auto* const gain = static_cast<float*>(gains);
  auto* const means = static_cast<float*>(statistics);
  const LayerNormParams forward{.x = x,
                                .residual = residual,
                                .sum = residual,
                                .gain = gain,
                                .bias = gain + o.width,
                                .y = y,
                                .means = means,
                                .inverses = means + rows,
                                .epsilon = 1e-5F,
                                .rows = rows,
                                .columns = o.width};
  subjects.push_back({"residual and layer norm", 4 * bytes, 0,
                      [=, &kernels](Stream& s) { return kernels.layer_norm->forward(s, kHalf, forward); }});
  const LayerNormBackwardParams backward{.x = x,
                                         .dy = y,
                                         .through = residual,
                                         .dx = residual,
                                         .gain = gain,
                                         .means = means,
                                         .inverses = means + rows,
                                         .partials = static_cast<float*>(partials),
                                         .rows = rows,
                                         .columns = o.width};
  const LayerNorm::Gradients gradients{gain + 2 * std::size_t{o.width}, gain + 3 * std::size_t{o.width},
                                       false};
  subjects.push_back({"layer norm backward", 4 * bytes, 0, [=, &kernels](Stream& s) {
                        return kernels.layer_norm->backward(s, kHalf, backward, gradients);
                      }});
  return absl::OkStatus();
}

absl::Status add_loss(Bench& bench, const Libraries& kernels, const Options& o,
                      std::vector<Subject>& subjects) {
  const std::uint32_t rows = o.samples * o.time;
  const std::size_t n = std::size_t{rows} * o.vocabulary;
  PL_ASSIGN_OR_RETURN(void* const logits, bench.values(n * 2));
  PL_ASSIGN_OR_RETURN(void* const labels, bench.zeros(std::size_t{rows} * 4));
  PL_ASSIGN_OR_RETURN(void* const losses, bench.zeros(std::size_t{rows} * 8));
  const CrossEntropyParams params{.logits = logits,
                                  .labels = static_cast<const std::int32_t*>(labels),
                                  .losses = static_cast<float*>(losses),
                                  .hits = static_cast<std::int32_t*>(losses) + rows,
                                  .scale = 1,
                                  .rows = rows,
                                  .classes = o.vocabulary,
                                  .stride = o.vocabulary};
  // Read once from memory: the second reading of a row is the cache's.
  subjects.push_back({"softmax, cross-entropy and gradient", 2.0 * static_cast<double>(n * 2), 0,
                      [=, &kernels](Stream& s) { return kernels.cross_entropy.gradient(s, kHalf, params); }});
  // Rows that do not end where an access does, as GPT-2's own 50,257 classes.
  CrossEntropyParams uneven = params;
  uneven.classes = uneven.stride = o.vocabulary - 47;
  subjects.push_back({"softmax, cross-entropy, uneven rows", 4.0 * uneven.rows * uneven.classes, 0,
                      [=, &kernels](Stream& s) { return kernels.cross_entropy.gradient(s, kHalf, uneven); }});
  return absl::OkStatus();
}

// Tokens that are all different, as far as the vocabulary goes.
absl::Status add_embedding(Bench& bench, const Libraries& kernels, const Options& o,
                           std::vector<Subject>& subjects) {
  const std::uint32_t rows = uncached_rows(o);
  const std::size_t n = std::size_t{rows} * o.width, table = std::size_t{o.vocabulary} * o.width;
  std::vector<std::int32_t> tokens;
  for (std::uint32_t r = 0; r < rows; ++r) tokens.push_back(static_cast<std::int32_t>(r % o.vocabulary));
  EmbeddingPlan plan;
  PL_RETURN_IF_ERROR(plan_embedding(tokens, o.vocabulary, plan));
  PL_ASSIGN_OR_RETURN(void* const on_gpu, bench.copy(std::as_bytes(std::span(tokens))));
  PL_ASSIGN_OR_RETURN(void* const order, bench.copy(std::as_bytes(std::span(plan.order))));
  PL_ASSIGN_OR_RETURN(void* const pieces, bench.copy(std::as_bytes(std::span(plan.pieces))));
  const EmbeddingCounts counts = plan.counts();
  PL_ASSIGN_OR_RETURN(void* const counted, bench.copy(std::as_bytes(std::span(&counts, 1))));
  PL_ASSIGN_OR_RETURN(void* const weights, bench.values(table * 2));
  PL_ASSIGN_OR_RETURN(void* const y, bench.values(n * 2));
  PL_ASSIGN_OR_RETURN(void* const gradient, bench.zeros(table * 4));
  PL_ASSIGN_OR_RETURN(void* const positions, bench.values(std::size_t{o.time} * o.width * 2));
  const EmbeddingParams forward{.tokens = static_cast<const std::int32_t*>(on_gpu),
                                .table = weights,
                                .positions = positions,
                                .y = y,
                                .rows = rows,
                                .time = o.time,
                                .width = o.width,
                                .vocabulary = o.vocabulary};
  const auto bytes = static_cast<double>(n * 2);
  subjects.push_back({"embedding and positions", 2 * bytes, 0,
                      [=, &kernels](Stream& s) { return kernels.embedding.forward(s, kHalf, forward); }});
  const EmbeddingPiecesParams backward{.counts = static_cast<const EmbeddingCounts*>(counted),
                                       .pieces = static_cast<const EmbeddingPiece*>(pieces),
                                       .order = static_cast<const std::uint32_t*>(order),
                                       .dy = y,
                                       .gradient = static_cast<float*>(gradient),
                                       .partials = nullptr,
                                       .width = o.width};
  // Each token's gradient is fp32, read and written.
  const double gradients = 8.0 * static_cast<double>(counts.pieces) * o.width;
  subjects.push_back({"embedding backward", bytes + gradients, 0, [=, &kernels](Stream& s) {
                        return kernels.embedding.backward(s, kHalf, backward, nullptr, {counts.pieces, 0});
                      }});
  return absl::OkStatus();
}

// With so many heads.
absl::Status add_attention(Bench& bench, const Libraries& kernels, const Options& o, std::uint32_t heads,
                           std::vector<Subject>& subjects) {
  const AttentionShape shape{o.samples, o.time, heads, o.width / heads};
  const std::string name = str_cat("attention: heads of ", shape.head_size);
  const std::size_t n = std::size_t{o.samples} * o.time * o.width, queries = Attention::products(shape);
  PL_ASSIGN_OR_RETURN(void* const qkv, bench.values(3 * n * 2));
  PL_ASSIGN_OR_RETURN(void* const dqkv, bench.values(3 * n * 2));
  PL_ASSIGN_OR_RETURN(void* const y, bench.values(n * 2));
  PL_ASSIGN_OR_RETURN(void* const dy, bench.values(n * 2));
  PL_ASSIGN_OR_RETURN(void* const statistics, bench.zeros(queries * 12));
  auto* const sums = static_cast<float*>(statistics);
  // Of the causal half: two products forward, five backward.
  const double one = 2.0 * o.samples * heads * o.time * (o.time + 1) / 2.0 * shape.head_size;
  const AttentionParams forward{.qkv = qkv, .y = y, .statistics = sums, .shape = shape, .scale = 0.125F};
  subjects.push_back(
      {name, 0, 2 * one, [=, &kernels](Stream& s) { return kernels.attention.forward(s, kHalf, forward); }});
  const AttentionBackwardParams backward{.qkv = qkv,
                                         .y = y,
                                         .dy = dy,
                                         .statistics = sums,
                                         .products = sums + 2 * queries,
                                         .dqkv = dqkv,
                                         .shape = shape,
                                         .scale = 0.125F};
  subjects.push_back({str_cat(name, ", backward"), 0, 5 * one,
                      [=, &kernels](Stream& s) { return kernels.attention.backward(s, kHalf, backward); }});
  return absl::OkStatus();
}

absl::Status add_optimizer(Bench& bench, const Libraries& kernels, const Options& o,
                           std::vector<Subject>& subjects) {
  const std::size_t n = o.parameters;
  PL_ASSIGN_OR_RETURN(void* const vectors, bench.values(4 * n * 4));
  PL_ASSIGN_OR_RETURN(void* const copy, bench.zeros(n * 2));
  PL_ASSIGN_OR_RETURN(void* const scratch, bench.zeros(square_parts(n) * 8));
  PL_ASSIGN_OR_RETURN(void* const clipping, bench.zeros(sizeof(Clipping)));
  const UpdateRange range{0, n, true};
  const std::vector<UpdateChunk> chunks = update_chunks({&range, 1});
  PL_ASSIGN_OR_RETURN(void* const on_gpu, bench.copy(std::as_bytes(std::span(chunks))));
  auto* const weights = static_cast<float*>(vectors);
  const AdamParams params{.update = {.chunks = static_cast<const UpdateChunk*>(on_gpu),
                                     .weights = weights,
                                     .gradient = weights + 3 * n,
                                     .copy = copy,
                                     .clipping = nullptr},
                          .first = weights + n,
                          .second = weights + 2 * n,
                          .step_size = 1e-3F,
                          .beta1 = 0.9F,
                          .one_minus_beta1 = 0.1F,
                          .beta2 = 0.95F,
                          .one_minus_beta2 = 0.05F,
                          .root_correction = 1,
                          .epsilon = 1e-8F,
                          .weight_decay = 0,
                          .shrink = 0.9999F};
  const std::size_t count = chunks.size();
  const auto bytes = static_cast<double>(n);
  subjects.push_back({"gradient norm", 4 * bytes, 0, [=, &kernels](Stream& s) {
                        return kernels.optimizer.clip(s, weights + 3 * n, n, 1, static_cast<double*>(scratch),
                                                      static_cast<Clipping*>(clipping));
                      }});
  subjects.push_back({"AdamW with bf16 copy", 30 * bytes, 0,
                      [=, &kernels](Stream& s) { return kernels.optimizer.adam(s, params, count); }});
  subjects.push_back({"weights to bf16", 6 * bytes, 0, [=, &kernels](Stream& s) {
                        return kernels.conversion.convert(s, DType::kF32, weights, kHalf, copy, n);
                      }});
  return absl::OkStatus();
}

// Beside the products with GELU in them: those without, whose time and that of GELU's kernels they save.
// Where cuBLASLt has none, they are not measured, and programs run the others.
absl::Status add_products(Bench& bench, Libraries& kernels, const Options& o,
                          std::vector<Subject>& subjects) {
  PL_ASSIGN_OR_RETURN(const auto library, CublasLt::open(bench.context(), o.cublaslt));
  const std::int64_t rows = std::int64_t{o.samples} * o.time, width = o.width;
  struct Named {
    const char* name;
    Product product;
  };
  // y = x w^T + b, in bf16.
  const auto layer = [&](std::int64_t outputs, std::int64_t inputs,
                         Product::Gelu gelu = Product::Gelu::kNone) {
    return Product{.m = rows,
                   .n = outputs,
                   .k = inputs,
                   .b_transposed = true,
                   .inputs = kHalf,
                   .output = kHalf,
                   .bias = true,
                   .gelu = gelu};
  };
  const Product back{.m = rows, .n = 4 * width, .k = width, .inputs = kHalf, .output = kHalf};
  Product back_gelu = back;
  back_gelu.gelu = Product::Gelu::kBackward;
  const Named products[] = {
      {"product: qkv", layer(3 * width, width)},
      {"product: up", layer(4 * width, width)},
      {"product: down", layer(width, 4 * width)},
      {"product: down, data backward", back},
      {"product: up, gelu", layer(4 * width, width, Product::Gelu::kForwardKeeping)},
      {"product: down, data backward, gelu", back_gelu},
      {"product: down, weights backward",
       {.m = width, .n = 4 * width, .k = rows, .a_transposed = true, .inputs = kHalf, .output = DType::kF32}},
      {"product: head",
       {.m = rows, .n = o.vocabulary, .k = width, .b_transposed = true, .inputs = kHalf, .output = kHalf}},
  };
  kernels.products.reserve(std::size(products));
  for (const Named& named : products) {
    const Product& p = named.product;
    absl::StatusOr<MatMul> matmul = MatMul::plan(library, p);
    if (p.gelu != Product::Gelu::kNone && absl::IsUnimplemented(matmul.status())) continue;
    PL_RETURN_IF_ERROR(matmul.status());
    kernels.products.push_back(*std::move(matmul));
    MatMul& planned = kernels.products.back();
    const auto bytes = [](std::int64_t elements, DType type) {
      return static_cast<std::size_t>(elements) * dtype_bytes(type);
    };
    PL_ASSIGN_OR_RETURN(void* const a, bench.values(bytes(p.m * p.k, kHalf)));
    PL_ASSIGN_OR_RETURN(void* const b, bench.values(bytes(p.n * p.k, kHalf)));
    PL_ASSIGN_OR_RETURN(void* const c, bench.zeros(bytes(p.m * p.n, p.output)));
    PL_ASSIGN_OR_RETURN(void* const bias, bench.zeros(bytes(p.n, p.output)));
    const bool has_aux = p.gelu != Product::Gelu::kNone;
    PL_ASSIGN_OR_RETURN(void* const aux, bench.values(bytes(has_aux ? p.m * p.n : 8, p.output)));
    PL_ASSIGN_OR_RETURN(void* const workspace,
                        bench.zeros(std::max<std::size_t>(planned.workspace_bytes(), 16)));
    const MatMul::Operands operands{.a = a,
                                    .b = b,
                                    .c = c,
                                    .bias = p.bias ? bias : nullptr,
                                    .aux = has_aux ? aux : nullptr,
                                    .workspace = workspace};
    subjects.push_back({named.name, 0,
                        2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k),
                        [&planned, operands](Stream& s) { return planned.run(s, operands); }});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Subjects> make_subjects(Bench& bench, const Options& options) {
  Subjects subjects;
  PL_ASSIGN_OR_RETURN(auto loaded, load(bench));
  subjects.libraries = std::move(loaded);
  Libraries& kernels = *subjects.libraries;
  PL_RETURN_IF_ERROR(add_pointwise(bench, kernels, options, subjects.all));
  PL_RETURN_IF_ERROR(add_norms(bench, kernels, options, subjects.all));
  PL_RETURN_IF_ERROR(add_loss(bench, kernels, options, subjects.all));
  PL_RETURN_IF_ERROR(add_embedding(bench, kernels, options, subjects.all));
  PL_RETURN_IF_ERROR(add_attention(bench, kernels, options, kHeads, subjects.all));
  PL_RETURN_IF_ERROR(add_attention(bench, kernels, options, kHeads / 2, subjects.all));
  PL_RETURN_IF_ERROR(add_optimizer(bench, kernels, options, subjects.all));
  PL_RETURN_IF_ERROR(add_products(bench, kernels, options, subjects.all));
  return subjects;
}

}  // namespace paceline::cuda
