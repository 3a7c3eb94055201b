/*
 * Where names are that other libraries have and deepc has not: the hint of DC0110.
 */
#include "dsl/base/hints.h"

#include <string.h>

typedef const char *const names[2];

/* Of a tensor. */
static names fields[] = {
    {"T", ":transpose()"},
    {"addmm", "a + b:matmul(c)"},
    {"amax", ":max(axis)"},
    {"amin", ":min(axis)"},
    {"arccos", ":acos()"},
    {"arccosh", ":acosh()"},
    {"arcsin", ":asin()"},
    {"arcsinh", ":asinh()"},
    {"arctan", ":atan()"},
    {"arctan2", "y:atan2(x)"},
    {"arctanh", ":atanh()"},
    {"astype", ":cast \"f32\""},
    {"backward", "opt:step(loss) takes the gradients, or dc.grad(loss, params)"},
    {"bmm", ":matmul multiplies the last two axes of each"},
    {"bool", ":cast \"bool\", or x:ne(0)"},
    {"broadcast_to", ":expand"},
    {"cat", "dc.concat({ a, b }, axis)"},
    {"chunk", ":split(n, axis)"},
    {"clip", ":clamp(lo, hi)"},
    {"contiguous", "every tensor is"},
    {"copy", ":clone()"},
    {"cpu", ":to \"cpu\", or :totable() for the values"},
    {"cuda", ":to \"cuda:0\"; deepc --devices lists what there is"},
    {"data", "x itself; p:set(v) gives a parameter another value"},
    {"detach", "dc.stop_gradient(x)"},
    {"dim", "#x.shape"},
    {"double", ":cast \"f64\""},
    {"equal", ":eq(y) element by element, :eq(y):all():item() of all"},
    {"elu", "nn.elu(x), of require \"deepc.nn\""},
    {"erfinv", ":erf_inv()"},
    {"fill", "dc.full(type, value)"},
    {"float", ":cast \"f32\""},
    {"gammaln", ":lgamma()"},
    {"grad", "dc.grad(loss, params) gives gradients"},
    {"half", ":cast \"f16\""},
    {"index_select", ":take(idx, axis)"},
    {"int", ":cast \"i32\""},
    {"invert", "~x"},
    {"is_contiguous", "every tensor is"},
    {"len", "#x, or x:size(axis)"},
    {"length", "#x, or x:size(axis)"},
    {"long", ":cast \"i64\""},
    {"masked_fill", "dc.where(mask, value, x)"},
    {"masked_select", ":compact(mask); dc.where(mask, x, 0) keeps the shape"},
    {"mm", ":matmul"},
    {"moveaxis", ":movedim(from, to)"},
    {"multiply", ":mul"},
    {"mv", ":matmul"},
    {"nDimension", "#x.shape"},
    {"nElement", "the product of x.shape"},
    {"narrow", "x[{ {first, last} }], or :slice { axis = {first, last} }"},
    {"ndim", "#x.shape"},
    {"negative", "-x"},
    {"new", "dc.zeros(type)"},
    {"numel", "the product of x.shape"},
    {"numpy", ":totable(), or :bytes()"},
    {"power", "x ^ y"},
    {"ravel", ":flatten()"},
    {"remainder", "x % y"},
    {"requires_grad", "dc.param(type) makes what is trained; x = x:watch() is a start of gradients "
                      "outside functions"},
    {"requires_grad_", "x = x:watch() is a start of gradients outside typed functions"},
    {"repeat", "a word of Lua; :tile(2, 3), or :repeat_interleave(2, axis) of each element"},
    {"select", "x[{ {}, k }]"},
    {"sigmoid_", "x:sigmoid()"},
    {"squeeze", ":reshape"},
    {"sub_", "x - y"},
    {"subtract", "x - y"},
    {"swapaxes", ":transpose(a, b)"},
    {"t", ":transpose()"},
    {"tolist", ":totable()"},
    {"topk", ":top_k(k, axis)"},
    {"type", ".dtype, or :cast \"f32\""},
    {"unsqueeze", ":reshape"},
    {"cholesky", "linalg.cholesky(x), of require \"deepc.linalg\""},
    {"det", "linalg.det(x), of require \"deepc.linalg\""},
    {"eig", "linalg.eig(x), of require \"deepc.linalg\""},
    {"eigh", "linalg.eigh(x), of require \"deepc.linalg\""},
    {"eigvals", "linalg.eigvals(x), of require \"deepc.linalg\""},
    {"inverse", "linalg.inverse(x), of require \"deepc.linalg\""},
    {"matrix_exp", "linalg.matrix_exp(x), of require \"deepc.linalg\""},
    {"matrix_power", "linalg.matrix_power(x), of require \"deepc.linalg\""},
    {"pinverse", "linalg.pinv(x), of require \"deepc.linalg\""},
    {"qr", "linalg.qr(x), of require \"deepc.linalg\""},
    {"slogdet", "linalg.slogdet(x), of require \"deepc.linalg\""},
    {"svd", "linalg.svd(x), of require \"deepc.linalg\""},
    {"value", ":item() of one element, :totable() of all"},
    {"view", ":reshape"},
    {"view_as", ":reshape(y.shape)"},
};

/* Of the module. */
static names functions[] = {
    {"Tensor", "dc.tensor"},
    {"array", "dc.tensor"},
    {"asarray", "dc.tensor"},
    {"bmm", "a:matmul(b)"},
    {"cat", "dc.concat({ a, b }, axis)"},
    {"concatenate", "dc.concat({ a, b }, axis)"},
    {"clip", "x:clamp(lo, hi)"},
    {"compile", "dc.fn(signature, f)"},
    {"cross_entropy", "nn.cross_entropy, of require \"deepc.nn\""},
    {"empty", "dc.zeros(type)"},
    {"expand_dims", "x:reshape"},
    {"full_like", "dc.full(x, value)"},
    {"from_numpy", "dc.tensor(table), dc.frombytes(bytes, type)"},
    {"jit", "dc.fn(signature, f)"},
    {"hstack", "dc.concat({ a, b }, 2)"},
    {"manualSeed", "dc.seed(n)"},
    {"manual_seed", "dc.seed(n)"},
    {"matMul", "a:matmul(b)"},
    {"mm", "a:matmul(b)"},
    {"multinomial", "random.multinomial(weights, n), of require \"deepc.random\""},
    {"normal", "dc.randn(type, { mean = 0, std = 1 })"},
    {"poisson", "random.poisson(type, { rate = 1 }), of require \"deepc.random\""},
    {"random", "require \"deepc.random\""},
    {"mse_loss", "nn.mse_loss, of require \"deepc.nn\""},
    {"nn", "require \"deepc.nn\""},
    {"no_grad", "gradients are taken where dc.grad is called; dc.stop_gradient(x) cuts one off"},
    {"optim", "require \"deepc.optim\""},
    {"permute", "x:permute"},
    {"power", "x ^ y"},
    {"rand_like", "dc.rand(x)"},
    {"randn_like", "dc.randn(x)"},
    {"randperm", "random.permutation(n), of require \"deepc.random\""},
    {"moveaxis", "x:movedim(from, to)"},
    {"range", "dc.arange(first, stop, step), or dc.iota(n)"},
    {"repeat", "x:tile(2, 3), or x:repeat_interleave(2, axis) of each element"},
    {"reshape", "x:reshape"},
    {"set_grad_enabled", "gradients are taken where dc.grad is called"},
    {"squeeze", "x:reshape"},
    {"swapaxes", "x:transpose(a, b)"},
    {"tensordot", "dc.einsum"},
    {"transpose", "x:transpose"},
    {"unsqueeze", "x:reshape"},
    {"vstack", "dc.concat({ a, b }, 1)"},
    {"binomial", "random.binomial(type, { n = 10, p = 0.5 }), of require \"deepc.random\""},
    {"cholesky", "linalg.cholesky, of require \"deepc.linalg\""},
    {"det", "linalg.det, of require \"deepc.linalg\""},
    {"eig", "linalg.eig, of require \"deepc.linalg\""},
    {"eigh", "linalg.eigh, of require \"deepc.linalg\""},
    {"eigvals", "linalg.eigvals, of require \"deepc.linalg\""},
    {"fft", "require \"deepc.fft\""},
    {"inverse", "linalg.inverse, of require \"deepc.linalg\""},
    {"linalg", "require \"deepc.linalg\""},
    {"lstsq", "linalg.lstsq, of require \"deepc.linalg\""},
    {"matrix_exp", "linalg.matrix_exp, of require \"deepc.linalg\""},
    {"matrix_power", "linalg.matrix_power, of require \"deepc.linalg\""},
    {"max_unpool1d", "nn.max_unpool1d(x, indices, window), of require \"deepc.nn\""},
    {"max_unpool2d", "nn.max_unpool2d(x, indices, window), of require \"deepc.nn\""},
    {"max_unpool3d", "nn.max_unpool3d(x, indices, window), of require \"deepc.nn\""},
    {"pinverse", "linalg.pinv, of require \"deepc.linalg\""},
    {"qr", "linalg.qr, of require \"deepc.linalg\""},
    {"slogdet", "linalg.slogdet, of require \"deepc.linalg\""},
    {"solve", "linalg.solve, of require \"deepc.linalg\""},
    {"std_mean", "x:std(axes) and x:mean(axes)"},
    {"svd", "linalg.svd, of require \"deepc.linalg\""},
    {"var_mean", "x:var(axes) and x:mean(axes)"},
    {"zeros_like", "dc.zeros(x)"},
    {"ones_like", "dc.ones(x)"},
};

/* Of the modules of the library; what is only spelt in another way is found without. */
static names library[] = {
    {"BCECriterion", "nn.bce_with_logits(logits, target), without a sigmoid before it"},
    {"BCELoss", "nn.bce_with_logits(logits, target), without a sigmoid before it"},
    {"BCEWithLogitsLoss", "nn.bce_with_logits(logits, target)"},
    {"BatchNorm1d", "nn.LayerNorm(n); nn.BatchNorm2d is for images"},
    {"BatchNormalization", "nn.LayerNorm(n); nn.BatchNorm2d is for images"},
    {"ClassNLLCriterion", "nn.cross_entropy(logits, labels), without a softmax before it"},
    {"Conv1d", "nn.Conv2d with a height of 1"},
    {"ConvTranspose2d", "enlarge x by :reshape, :expand, :reshape, then nn.Conv2d"},
    {"CrossEntropyCriterion", "nn.cross_entropy(logits, labels)"},
    {"CrossEntropyLoss", "nn.cross_entropy(logits, labels)"},
    {"DataLoader", "data.set(x, y):batches { size = 64, shuffle = true }"},
    {"batches", "data.set(x, y):batches { size = 64, shuffle = true }"},
    {"Dropout2d", "nn.Dropout(p)"},
    {"HuberLoss", "nn.huber_loss(prediction, target)"},
    {"L1Loss", "nn.l1_loss(prediction, target)"},
    {"AbsCriterion", "nn.l1_loss(prediction, target)"},
    {"LookupTable", "nn.Embedding(count, size)"},
    {"LogSoftMax", "nn.LogSoftmax(axis)"},
    {"MSECriterion", "nn.mse_loss(prediction, target)"},
    {"MSELoss", "nn.mse_loss(prediction, target)"},
    {"Module", "nn.class \"Name\" makes a class of layers"},
    {"ModuleList", "a plain table of layers as a field of the layer"},
    {"NLLLoss", "nn.cross_entropy(logits, labels), without a softmax before it"},
    {"Parameter", "dc.param(type, init)"},
    {"Reshape", "a function in nn.Sequential: function(x) return x:reshape(...) end"},
    {"SmoothL1Criterion", "nn.huber_loss(prediction, target)"},
    {"SmoothL1Loss", "nn.huber_loss(prediction, target)"},
    {"SoftMax", "nn.Softmax(axis)"},
    {"SpatialAveragePooling", "nn.AvgPool2d(window)"},
    {"SpatialBatchNormalization", "nn.BatchNorm2d(channels)"},
    {"SpatialConvolution", "nn.Conv2d(inputs, outputs, window)"},
    {"SpatialMaxPooling", "nn.MaxPool2d(window)"},
    {"SpatialZeroPadding", "nn.Conv2d(inputs, outputs, window, { padding = 1 })"},
    {"TensorDataset", "data.set(x, y)"},
    {"View", "a function in nn.Sequential: function(x) return x:reshape(...) end, or nn.Flatten()"},
    {"clip_grad_norm_", "optim.Adam(params, { clip_norm = 1 })"},
    {"clip_grad_value_", "optim.Adam(params, { clip_value = 1 })"},
    {"max_pool1d", "dc.max_pool1d(x, window, options)"},
    {"max_pool2d", "dc.max_pool2d(x, window, options)"},
    {"max_pool3d", "dc.max_pool3d(x, window, options)"},
    {"max_pool1d_with_indices", "dc.max_pool1d(x, window, { return_indices = true })"},
    {"max_pool2d_with_indices", "dc.max_pool2d(x, window, { return_indices = true })"},
    {"max_pool3d_with_indices", "dc.max_pool3d(x, window, { return_indices = true })"},
    {"dctn", "fft.dct along one axis after the other"},
    {"idctn", "fft.idct along one axis after the other"},
    {"dstn", "fft.dst along one axis after the other"},
    {"idstn", "fft.idst along one axis after the other"},
    {"nll_loss", "nn.cross_entropy(logits, labels), without a softmax before it"},
    {"lr_scheduler", "require \"deepc.schedules\""},
    {"swa_utils", "optim.EMA(net, 0.999), optim.SWA(net)"},
    {"AveragedModel", "optim.EMA(net, 0.999), optim.SWA(net)"},
    {"RectifiedAdam", "optim.RAdam(params)"},
    {"StepLR", "schedules.step { lr, every, factor }"},
    {"MultiStepLR", "schedules.step { lr, after = { ... }, factor }"},
    {"ExponentialLR", "schedules.exponential { lr, factor }"},
    {"LinearLR", "schedules.linear { from, to, steps }"},
    {"LambdaLR", "any function of the number of the step is a schedule"},
    {"PolynomialLR", "schedules.polynomial { lr, steps, power }"},
    {"OneCycleLR", "schedules.one_cycle { lr, steps }"},
    {"CosineAnnealingLR", "schedules.cosine { lr, steps, final }"},
    {"CosineAnnealingWarmRestarts", "schedules.cosine { lr, steps, restart = true, grow }"},
    {"ReduceLROnPlateau", "schedules.reduce_on_plateau { lr, factor, patience }"},
    {"SequentialLR", "schedules.sequence { { steps, schedule }, ..., schedule }"},
    {"ChainedScheduler", "schedules.chained { schedule, factor, ... }"},
    {"SummaryWriter", "require \"deepc.tensorboard\".writer(folder)"},
    {"events", "require \"deepc.tensorboard\".writer(folder)"},
    {"accuracy_score", "metrics.accuracy(predicted, labels)"},
    {"precision_score", "metrics.precision(predicted, labels, classes)"},
    {"recall_score", "metrics.recall(predicted, labels, classes)"},
    {"f1_score", "metrics.f1(predicted, labels, classes)"},
    {"jaccard_score", "metrics.iou(predicted, labels, classes)"},
    {"roc_auc_score", "metrics.roc_auc(scores, labels)"},
    {"average_precision_score", "metrics.average_precision(scores, labels)"},
    {"mean_squared_error", "metrics.mse(predicted, target)"},
    {"mean_absolute_error", "metrics.mae(predicted, target)"},
    {"r2_score", "metrics.r2(predicted, target)"},
    {"sgd", "optim.SGD(params, options), and opt:step(loss)"},
    {"xavier", "xavier_uniform, xavier_normal"},
    {"kaiming", "kaiming_uniform, kaiming_normal"},
    {"he", "kaiming_uniform, kaiming_normal"},
    {"glorot_uniform", "xavier_uniform"},
    {"glorot_normal", "xavier_normal"},
    {"he_uniform", "kaiming_uniform"},
    {"he_normal", "kaiming_normal"},
};

static const char *find_hint(names *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i][0], name) == 0)
            return list[i][1];
    return NULL;
}

const char *dc_hint_field(const char *name)
{
    return find_hint(fields, DC_COUNTOF(fields), name);
}

const char *dc_hint_library(const char *name)
{
    return find_hint(library, DC_COUNTOF(library), name);
}

const char *dc_hint_function(const char *name)
{
    return find_hint(functions, DC_COUNTOF(functions), name);
}

/* ---- surplus arguments ------------------------------------------------------------------------ */

/* What stands for one argument more than a function takes. */
static names surplus[] = {
    {"add", "a:add(b):add(c), or a + b + c"},
    {"argmax", "one axis; x:flatten() makes one of all"},
    {"argmin", "one axis; x:flatten() makes one of all"},
    {"concat", "tensors are in a list: dc.concat({ a, b }, axis)"},
    {"cummax", "one axis"},
    {"cummin", "one axis"},
    {"cumprod", "one axis"},
    {"cumsum", "one axis"},
    {"grad", "several tensors are in a list: dc.grad(loss, { a, b })"},
    {"item", "x[i]:item() is one of several elements"},
    {"log_softmax", "one axis; x:flatten(1, 2) makes one of two"},
    {"logcumsumexp", "one axis"},
    {"matmul", "a:matmul(b):matmul(c)"},
    {"maximum", "a:maximum(b):maximum(c)"},
    {"minimum", "a:minimum(b):minimum(c)"},
    {"mul", "a:mul(b):mul(c), or a * b * c"},
    {"ones", "dc.full(type, value) has another value"},
    {"size", "x.shape has all sizes"},
    {"softmax", "one axis; x:flatten(1, 2) makes one of two"},
    {"stack", "tensors are in a list: dc.stack({ a, b }, axis)"},
    {"tensor", "values are in a table: dc.tensor { 1, 2, 3 }"},
    {"transpose", "x:permute(3, 1, 2) puts all axes in order"},
    {"zeros", "dc.full(type, value) has another value"},
};

static bool is_one_of(const char *name, const char *const *list)
{
    while (*list != NULL && strcmp(*list, name) != 0)
        list++;
    return *list != NULL;
}

/* "{ 1, 'batch' }": the arguments from `from` to `to`, where all are axes. */
static const char *list_text(lua_State *L, int from, int to)
{
    luaL_Buffer b;
    for (int i = from; i <= to; i++)
        if (lua_type(L, i) != LUA_TNUMBER && lua_type(L, i) != LUA_TSTRING)
            return NULL;
    luaL_buffinit(L, &b);
    for (int i = from; i <= to; i++) {
        const bool text = lua_type(L, i) == LUA_TSTRING;
        luaL_addstring(&b, i == from ? "{ " : ", ");
        luaL_addstring(&b, text ? "\"" : "");
        lua_pushvalue(L, i);
        luaL_addvalue(&b);
        luaL_addstring(&b, text ? "\"" : "");
    }
    luaL_addstring(&b, " }");
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}

/* "f32[2, 3]" of the numbers from index `from` to `to`, or of those in the list there; pushes it. */
static const char *shape_text(lua_State *L, const char *dtype, int from, int to)
{
    luaL_Buffer b;
    const bool list = lua_type(L, from) == LUA_TTABLE;
    const lua_Integer n = list ? (lua_Integer)lua_rawlen(L, from) : to - from + 1;
    luaL_buffinit(L, &b);
    luaL_addstring(&b, dtype);
    luaL_addstring(&b, "[");
    for (lua_Integer i = 1; i <= n; i++) {
        if (list)
            lua_rawgeti(L, from, i);
        else
            lua_pushvalue(L, from + (int)i - 1);
        if (lua_type(L, -1) != LUA_TNUMBER) {
            lua_pop(L, 1);
            break;
        }
        luaL_addstring(&b, i > 1 ? ", " : ""); /* below the value on top: it is added behind */
        luaL_addvalue(&b);
    }
    luaL_addstring(&b, "]");
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}

static bool is_sizes(lua_State *L, int idx)
{
    bool is = lua_type(L, idx) == LUA_TTABLE && lua_rawlen(L, idx) > 0 && lua_rawlen(L, idx) <= 8;
    for (lua_Integer i = 1; is && i <= (lua_Integer)lua_rawlen(L, idx); i++) {
        is = lua_rawgeti(L, idx, i) == LUA_TNUMBER;
        lua_pop(L, 1);
    }
    return is;
}

/* randint(0, 10, { 5 }) and randint(10, { 5 }), as in PyTorch. */
static const char *randint_text(lua_State *L)
{
    const int at = lua_type(L, 2) == LUA_TNUMBER ? 3 : 2;
    if (lua_type(L, 1) != LUA_TNUMBER || !is_sizes(L, at))
        return NULL;
    return lua_pushfstring(L, "dc.randint(\"%s\", { low = %s, high = %s })",
                           shape_text(L, "i32", at, at), at == 3 ? luaL_tolstring(L, 1, NULL) : "0",
                           luaL_tolstring(L, at - 1, NULL));
}

const char *dc_hint_type(lua_State *L, const char *op, int idx)
{
    int last = idx;
    luaL_checkstack(L, 12, "an error");
    if (strcmp(op, "randint") == 0 && idx == 1 && randint_text(L) != NULL)
        return lua_tostring(L, -1);
    if (!is_sizes(L, idx) && lua_type(L, idx) != LUA_TNUMBER)
        return NULL;
    while (lua_type(L, idx) == LUA_TNUMBER && lua_type(L, last + 1) == LUA_TNUMBER)
        last++;
    if (strcmp(op, "eye") == 0 && last == idx && lua_type(L, idx) == LUA_TNUMBER) {
        const char *n = luaL_tolstring(L, idx, NULL);
        return lua_pushfstring(L, "a type is one text: dc.eye \"f32[%s, %s]\"", n, n);
    }
    if (strcmp(op, "full") == 0)
        return lua_pushfstring(L, "a type is one text: dc.full(\"%s\", value)",
                               shape_text(L, "f32", idx, is_sizes(L, idx) ? idx : last - 1));
    return lua_pushfstring(L, "a type is one text: dc.%s \"%s\"", op,
                           shape_text(L, strcmp(op, "randint") == 0 ? "i32" : "f32", idx, last));
}

/* What a number behind the arguments stands for in PyTorch, by the beginning of a layer's name. */
static const char *const positional[][3] = {
    {"nn.Conv", "stride", "padding"},    {"nn.MaxPool", "stride", "padding"},
    {"nn.AvgPool", "stride", "padding"}, {"nn.LSTM", "layers", NULL},
    {"nn.GRU", "layers", NULL},          {"nn.RNN", "layers", NULL},
};

const char *dc_hint_options(lua_State *L, const char *op, int idx)
{
    luaL_checkstack(L, 8, "an error");
    for (size_t i = 0; i < DC_COUNTOF(positional); i++)
        if (strncmp(op, positional[i][0], strlen(positional[i][0])) == 0 &&
            lua_type(L, idx) == LUA_TNUMBER)
            return lua_pushfstring(L, "options have names: { %s = %s }", positional[i][1],
                                   luaL_tolstring(L, idx, NULL));
    return NULL;
}

const char *dc_hint_option(lua_State *L, const char *const *known, const char *key)
{
    static names options[] = {
        {"kernel_size", "the window is an argument: nn.Conv2d(inputs, outputs, window)"},
        {"in_channels", "nn.Conv2d(inputs, outputs, window)"},
        {"out_channels", "nn.Conv2d(inputs, outputs, window)"},
        {"in_features", "nn.Linear(inputs, outputs)"},
        {"out_features", "nn.Linear(inputs, outputs)"},
        {"num_layers", "layers = 2"},
        {"strides", "stride = 2"},
        {"batch_size", "size = 64"},
        {"dim", "axis = 1 is the first axis, axis = -1 the last"},
        {"keepdim", "keep = true"},
        {"keepdims", "keep = true"},
        {"learning_rate", "lr = 1e-3"},
    };
    const char *hint = find_hint(options, DC_COUNTOF(options), key);
    for (int i = 0; hint != NULL && strchr(hint, '(') == NULL && known[i] != NULL; i++)
        if (strncmp(hint, known[i], strlen(known[i])) == 0 && hint[strlen(known[i])] == ' ')
            return hint;
    if (hint != NULL && strchr(hint, '(') != NULL)
        return hint;
    lua_newtable(L);
    return dc_hint_spelling(L, -1, known, key);
}

/* nn.Conv2d(1, 8, 3, 1, 1) */
static const char *positional_text(lua_State *L, const char *op)
{
    const int top = lua_gettop(L), last = top - 1;
    for (size_t i = 0; i < DC_COUNTOF(positional); i++)
        if (strncmp(op, positional[i][0], strlen(positional[i][0])) == 0 &&
            positional[i][2] != NULL && lua_type(L, top) == LUA_TNUMBER &&
            lua_type(L, last) == LUA_TNUMBER)
            return lua_pushfstring(L, "options have names: { %s = %s, %s = %s }", positional[i][1],
                                   luaL_tolstring(L, last, NULL), positional[i][2],
                                   luaL_tolstring(L, top, NULL));
    return NULL;
}

const char *dc_hint_surplus(lua_State *L, const char *op, int at)
{
    static const char *const of_axes[] = {"sum", "prod", "max",  "min",       "mean", "all", "any",
                                          "var", "std",  "norm", "logsumexp", "flip", NULL};
    static const char *const keeps[] = {"sum",       "prod",   "max",    "min", "mean",
                                        "all",       "any",    "var",    "std", "norm",
                                        "logsumexp", "argmax", "argmin", NULL};
    static const char *const of_type[] = {"zeros", "ones",    "full", "rand",
                                          "randn", "randint", "eye",  NULL};
    const int top = lua_gettop(L);
    luaL_checkstack(L, top + 8, "an error");
    if (is_one_of(op, of_type) && lua_type(L, 1) == LUA_TNUMBER)
        return dc_hint_type(L, op, 1);
    if (positional_text(L, op) != NULL)
        return lua_tostring(L, -1);
    if (is_one_of(op, keeps) && lua_type(L, at) == LUA_TBOOLEAN &&
        (lua_type(L, 2) == LUA_TNUMBER || lua_type(L, 2) == LUA_TSTRING))
        return lua_pushfstring(L,
                               lua_type(L, 2) == LUA_TNUMBER ? "x:%s { axis = %s, keep = %s }"
                                                             : "x:%s { axis = \"%s\", keep = %s }",
                               op, luaL_tolstring(L, 2, NULL),
                               lua_toboolean(L, at) ? "true" : "false");
    if (strcmp(op, "nn.Sequential") == 0 && lua_type(L, at) == LUA_TTABLE)
        return "layers are in a table: nn.Sequential { a, b }";
    const char *list = is_one_of(op, of_axes) ? list_text(L, 2, top) : NULL;
    if (list != NULL)
        return lua_pushfstring(L, "several axes are a list: x:%s %s", op, list);
    return find_hint(surplus, DC_COUNTOF(surplus), op);
}
