/* The engine's loops as a C programmer would write them: what the compiled kernels are held
 * against.
 *
 * Everything that decides the cost is the same as in the engine: a step names a transition, a
 * transition names two rows of the feature table and a row of facts, and vectors are stored
 * feature-major (w[k * lanes + j]) so that every innermost loop runs over contiguous lanes.
 * Pointers that a loop writes through are `restrict`, which is what lets gcc vectorise without a
 * test for overlap. The columns of `facts` (REWARD, GAMMA_NEXT, ...) are defined on the command line
 * of the compiler, from the engine's own list (`c_loops.py`).
 */

#include <stdint.h>
#include <stdlib.h>

typedef struct {
    int64_t steps, columns;
    const int32_t *event;
    const double *factor;
    const int32_t *row, *row_next;
    const double *facts;
} Stream;

typedef struct {
    const int64_t *first, *length, *offset;
    const int32_t *feature;
    const double *value;
} Table;

typedef struct {
    int64_t length;
    const int32_t *feature;
    const double *value;
} Row;

static inline Row find_row(const Table *table, int32_t i)
{
    int64_t first = table->first[i];
    Row x = {table->length[i], table->feature + first - table->offset[i], table->value + first};
    return x;
}

/* One number a lane, on a cache line of its own (aligned_alloc wants whole lines). */
static double *new_lanes(int64_t lanes)
{
    size_t lines = (lanes * sizeof(double) + 63) / 64;
    double *room = aligned_alloc(64, lines * 64);
    if (room == NULL)
        abort();
    return room;
}

static inline void fill_zero(int64_t n, double *restrict out)
{
    for (int64_t j = 0; j < n; j++)
        out[j] = 0.0;
}

static inline void multiply(int64_t n, const double *restrict by, double *restrict out)
{
    for (int64_t j = 0; j < n; j++)
        out[j] *= by[j];
}

static inline void multiply_add(int64_t n, const double *restrict a, const double *restrict b,
                                double *restrict out)
{
    for (int64_t j = 0; j < n; j++)
        out[j] += a[j] * b[j];
}

/* out_j += w_j . x for every lane j */
static inline void read_row(Row x, int64_t lanes, const double *restrict w, double *restrict out)
{
    for (int64_t q = 0; q < x.length; q++) {
        const double *restrict w_k = w + x.feature[q] * lanes;
        double x_k = x.value[q];
        for (int64_t j = 0; j < lanes; j++)
            out[j] += w_k[j] * x_k;
    }
}

/* w_j += by_j x for every lane j */
static inline void write_row(Row x, int64_t lanes, const double *restrict by, double *restrict w)
{
    for (int64_t q = 0; q < x.length; q++) {
        double *restrict w_k = w + x.feature[q] * lanes;
        double x_k = x.value[q];
        for (int64_t j = 0; j < lanes; j++)
            w_k[j] += by[j] * x_k;
    }
}

/* The same two for a pair of vectors, which shares the reading of the row. */
static inline void read_row_twice(Row x, int64_t lanes, const double *restrict w,
                                  const double *restrict h, double *restrict w_x,
                                  double *restrict h_x)
{
    for (int64_t q = 0; q < x.length; q++) {
        const double *restrict w_k = w + x.feature[q] * lanes;
        const double *restrict h_k = h + x.feature[q] * lanes;
        double x_k = x.value[q];
        for (int64_t j = 0; j < lanes; j++) {
            w_x[j] += w_k[j] * x_k;
            h_x[j] += h_k[j] * x_k;
        }
    }
}

static inline void write_row_twice(Row x, int64_t lanes, const double *restrict by_w,
                                   const double *restrict by_h, double *restrict w,
                                   double *restrict h)
{
    for (int64_t q = 0; q < x.length; q++) {
        double *restrict w_k = w + x.feature[q] * lanes;
        double *restrict h_k = h + x.feature[q] * lanes;
        double x_k = x.value[q];
        for (int64_t j = 0; j < lanes; j++) {
            w_k[j] += by_w[j] * x_k;
            h_k[j] += by_h[j] * x_k;
        }
    }
}

/* Perturbed TD without traces: w += alpha rho (r + gamma' w.x' - (1 + eta) w.x) x. */
void perturbed_td(Stream s, Table table, int64_t lanes, const double *restrict alpha,
                  const double *restrict eta, double *restrict w)
{
    double *restrict w_x = new_lanes(lanes);
    double *restrict w_x_next = new_lanes(lanes);
    double *restrict by_x = new_lanes(lanes);

    for (int64_t t = 0; t < s.steps; t++) {
        int32_t e = s.event[t];
        const double *fact = s.facts + e * s.columns;
        double reward = fact[REWARD], gamma_next = fact[GAMMA_NEXT], rho = fact[RHO];
        double factor = s.factor[t];
        if (rho == 0.0)
            continue;
        Row x = find_row(&table, s.row[e]), x_next = find_row(&table, s.row_next[e]);

        fill_zero(lanes, w_x);
        fill_zero(lanes, w_x_next);
        read_row(x, lanes, w, w_x);
        read_row(x_next, lanes, w, w_x_next);
        for (int64_t j = 0; j < lanes; j++) {
            double delta = reward + gamma_next * w_x_next[j] - (1 + eta[j]) * w_x[j];
            by_x[j] = alpha[j] * factor * delta * rho;
        }
        write_row(x, lanes, by_x, w);
    }
    free(w_x);
    free(w_x_next);
    free(by_x);
}

/* TDC without traces: z = rho x, so h.z is rho h.x. */
void tdc(Stream s, Table table, int64_t lanes, const double *restrict alpha,
         const double *restrict ratio, const double *restrict lam, double *restrict w,
         double *restrict h)
{
    double *restrict w_x = new_lanes(lanes);
    double *restrict w_x_next = new_lanes(lanes);
    double *restrict h_x = new_lanes(lanes);
    double *restrict w_by_x = new_lanes(lanes);
    double *restrict w_by_x_next = new_lanes(lanes);
    double *restrict h_by_x = new_lanes(lanes);

    for (int64_t t = 0; t < s.steps; t++) {
        int32_t e = s.event[t];
        const double *fact = s.facts + e * s.columns;
        double reward = fact[REWARD], gamma_next = fact[GAMMA_NEXT], rho = fact[RHO];
        double factor = s.factor[t];
        Row x = find_row(&table, s.row[e]), x_next = find_row(&table, s.row_next[e]);

        fill_zero(lanes, w_x);
        fill_zero(lanes, w_x_next);
        fill_zero(lanes, h_x);
        read_row_twice(x, lanes, w, h, w_x, h_x);
        read_row(x_next, lanes, w, w_x_next);
        for (int64_t j = 0; j < lanes; j++) {
            double a = alpha[j] * factor, beta = ratio[j] * a;
            double delta = reward + gamma_next * w_x_next[j] - w_x[j];
            w_by_x[j] = a * delta * rho;
            w_by_x_next[j] = -a * gamma_next * (1 - lam[j]) * (rho * h_x[j]);
            h_by_x[j] = beta * delta * rho - beta * h_x[j];
        }
        write_row_twice(x, lanes, w_by_x, h_by_x, w, h);
        write_row(x_next, lanes, w_by_x_next, w);
    }
    free(w_x);
    free(w_x_next);
    free(h_x);
    free(w_by_x);
    free(w_by_x_next);
    free(h_by_x);
}

/* Perturbed TD with traces: z = rho (gamma lam / (1 + eta) z + x), w += alpha delta z. */
void perturbed_td_traced(Stream s, Table table, int64_t lanes, int64_t features,
                         const double *restrict alpha, const double *restrict eta,
                         const double *restrict lam, double *restrict w, double *restrict z)
{
    double *restrict decay = new_lanes(lanes);
    double *restrict scale = new_lanes(lanes);
    double *restrict w_x = new_lanes(lanes);
    double *restrict w_x_next = new_lanes(lanes);
    double *restrict by_z = new_lanes(lanes);
    double gamma = 0.0;

    for (int64_t t = 0; t < s.steps; t++) {
        int32_t e = s.event[t];
        const double *fact = s.facts + e * s.columns;
        double reward = fact[REWARD], gamma_next = fact[GAMMA_NEXT], rho = fact[RHO];
        double factor = s.factor[t];
        Row x = find_row(&table, s.row[e]), x_next = find_row(&table, s.row_next[e]);

        for (int64_t j = 0; j < lanes; j++) {
            decay[j] = rho * (gamma * lam[j] / (1 + eta[j]));
            scale[j] = rho;
        }
        for (int64_t k = 0; k < features; k++)
            multiply(lanes, decay, z + k * lanes);
        write_row(x, lanes, scale, z);

        fill_zero(lanes, w_x);
        fill_zero(lanes, w_x_next);
        read_row(x, lanes, w, w_x);
        read_row(x_next, lanes, w, w_x_next);
        for (int64_t j = 0; j < lanes; j++) {
            double delta = reward + gamma_next * w_x_next[j] - (1 + eta[j]) * w_x[j];
            by_z[j] = alpha[j] * factor * delta;
        }
        for (int64_t k = 0; k < features; k++)
            multiply_add(lanes, by_z, z + k * lanes, w + k * lanes);
        gamma = fact[GAMMA_CARRIED];
    }
    free(decay);
    free(scale);
    free(w_x);
    free(w_x_next);
    free(by_z);
}

/* TDC with traces: z = rho (gamma lam z + x). */
void tdc_traced(Stream s, Table table, int64_t lanes, int64_t features,
                const double *restrict alpha, const double *restrict ratio,
                const double *restrict lam, double *restrict w, double *restrict h,
                double *restrict z)
{
    double *restrict decay = new_lanes(lanes);
    double *restrict scale = new_lanes(lanes);
    double *restrict w_x = new_lanes(lanes);
    double *restrict w_x_next = new_lanes(lanes);
    double *restrict h_x = new_lanes(lanes);
    double *restrict h_z = new_lanes(lanes);
    double *restrict w_by_z = new_lanes(lanes);
    double *restrict w_by_x_next = new_lanes(lanes);
    double *restrict h_by_z = new_lanes(lanes);
    double *restrict h_by_x = new_lanes(lanes);
    double gamma = 0.0;

    for (int64_t t = 0; t < s.steps; t++) {
        int32_t e = s.event[t];
        const double *fact = s.facts + e * s.columns;
        double reward = fact[REWARD], gamma_next = fact[GAMMA_NEXT], rho = fact[RHO];
        double factor = s.factor[t];
        Row x = find_row(&table, s.row[e]), x_next = find_row(&table, s.row_next[e]);

        for (int64_t j = 0; j < lanes; j++) {
            decay[j] = rho * gamma * lam[j];
            scale[j] = rho;
        }
        for (int64_t k = 0; k < features; k++)
            multiply(lanes, decay, z + k * lanes);
        write_row(x, lanes, scale, z);

        fill_zero(lanes, w_x);
        fill_zero(lanes, w_x_next);
        fill_zero(lanes, h_x);
        fill_zero(lanes, h_z);
        read_row_twice(x, lanes, w, h, w_x, h_x);
        read_row(x_next, lanes, w, w_x_next);
        for (int64_t k = 0; k < features; k++)
            multiply_add(lanes, h + k * lanes, z + k * lanes, h_z);
        for (int64_t j = 0; j < lanes; j++) {
            double a = alpha[j] * factor, beta = ratio[j] * a;
            double delta = reward + gamma_next * w_x_next[j] - w_x[j];
            w_by_z[j] = a * delta;
            w_by_x_next[j] = -a * gamma_next * (1 - lam[j]) * h_z[j];
            h_by_z[j] = beta * delta;
            h_by_x[j] = -beta * h_x[j];
        }
        for (int64_t k = 0; k < features; k++) {
            multiply_add(lanes, w_by_z, z + k * lanes, w + k * lanes);
            multiply_add(lanes, h_by_z, z + k * lanes, h + k * lanes);
        }
        write_row(x, lanes, h_by_x, h);
        write_row(x_next, lanes, w_by_x_next, w);
        gamma = fact[GAMMA_CARRIED];
    }
    free(decay);
    free(scale);
    free(w_x);
    free(w_x_next);
    free(h_x);
    free(h_z);
    free(w_by_z);
    free(w_by_x_next);
    free(h_by_z);
    free(h_by_x);
}

/* TD without traces. */
void td(Stream s, Table table, int64_t lanes, const double *restrict alpha, double *restrict w)
{
    double *restrict w_x = new_lanes(lanes);
    double *restrict w_x_next = new_lanes(lanes);
    double *restrict by_x = new_lanes(lanes);

    for (int64_t t = 0; t < s.steps; t++) {
        int32_t e = s.event[t];
        const double *fact = s.facts + e * s.columns;
        double reward = fact[REWARD], gamma_next = fact[GAMMA_NEXT], rho = fact[RHO];
        double factor = s.factor[t];
        if (rho == 0.0)
            continue;
        Row x = find_row(&table, s.row[e]), x_next = find_row(&table, s.row_next[e]);

        fill_zero(lanes, w_x);
        fill_zero(lanes, w_x_next);
        read_row(x, lanes, w, w_x);
        read_row(x_next, lanes, w, w_x_next);
        for (int64_t j = 0; j < lanes; j++) {
            double delta = reward + gamma_next * w_x_next[j] - w_x[j];
            by_x[j] = alpha[j] * factor * delta * rho;
        }
        write_row(x, lanes, by_x, w);
    }
    free(w_x);
    free(w_x_next);
    free(by_x);
}

/* TD with traces: z = rho (gamma lam z + x), w += alpha delta z. */
void td_traced(Stream s, Table table, int64_t lanes, int64_t features,
               const double *restrict alpha, const double *restrict lam, double *restrict w,
               double *restrict z)
{
    double *restrict decay_z = new_lanes(lanes);
    double *restrict scale_z = new_lanes(lanes);
    double *restrict w_x = new_lanes(lanes);
    double *restrict w_x_next = new_lanes(lanes);
    double *restrict by_z = new_lanes(lanes);
    double gamma = 0.0;

    for (int64_t t = 0; t < s.steps; t++) {
        int32_t e = s.event[t];
        const double *fact = s.facts + e * s.columns;
        double reward = fact[REWARD], gamma_next = fact[GAMMA_NEXT], rho = fact[RHO];
        double factor = s.factor[t];
        Row x = find_row(&table, s.row[e]), x_next = find_row(&table, s.row_next[e]);

        for (int64_t j = 0; j < lanes; j++) {
            decay_z[j] = rho * gamma * lam[j];
            scale_z[j] = rho;
        }
        for (int64_t k = 0; k < features; k++)
            multiply(lanes, decay_z, z + k * lanes);
        write_row(x, lanes, scale_z, z);

        fill_zero(lanes, w_x);
        fill_zero(lanes, w_x_next);
        read_row(x, lanes, w, w_x);
        read_row(x_next, lanes, w, w_x_next);
        for (int64_t j = 0; j < lanes; j++) {
            double delta = reward + gamma_next * w_x_next[j] - w_x[j];
            by_z[j] = alpha[j] * factor * delta;
        }
        for (int64_t k = 0; k < features; k++)
            multiply_add(lanes, by_z, z + k * lanes, w + k * lanes);
        gamma = fact[GAMMA_CARRIED];
    }
    free(decay_z);
    free(scale_z);
    free(w_x);
    free(w_x_next);
    free(by_z);
}

/* ETD without traces: F = gamma rho_prev F + i, w += alpha rho (lam i + (1 - lam) F) delta x. */
void etd(Stream s, Table table, int64_t lanes, const double *restrict alpha,
         const double *restrict lam, double *restrict w)
{
    double *restrict F = new_lanes(lanes);
    double *restrict w_x = new_lanes(lanes);
    double *restrict w_x_next = new_lanes(lanes);
    double *restrict by_x = new_lanes(lanes);
    double gamma = 0.0, rho_prev = 0.0;

    fill_zero(lanes, F);
    for (int64_t t = 0; t < s.steps; t++) {
        int32_t e = s.event[t];
        const double *fact = s.facts + e * s.columns;
        double reward = fact[REWARD], gamma_next = fact[GAMMA_NEXT], rho = fact[RHO];
        double factor = s.factor[t];
        double interest = fact[INTEREST];
        for (int64_t j = 0; j < lanes; j++)
            F[j] = gamma * rho_prev * F[j] + interest;
        gamma = fact[GAMMA_CARRIED];
        rho_prev = rho;
        if (rho == 0.0)
            continue;
        Row x = find_row(&table, s.row[e]), x_next = find_row(&table, s.row_next[e]);

        fill_zero(lanes, w_x);
        fill_zero(lanes, w_x_next);
        read_row(x, lanes, w, w_x);
        read_row(x_next, lanes, w, w_x_next);
        for (int64_t j = 0; j < lanes; j++) {
            double delta = reward + gamma_next * w_x_next[j] - w_x[j];
            double emphasis = lam[j] * interest + (1 - lam[j]) * F[j];
            by_x[j] = alpha[j] * factor * delta * (rho * emphasis);
        }
        write_row(x, lanes, by_x, w);
    }
    free(F);
    free(w_x);
    free(w_x_next);
    free(by_x);
}

/* ETD with traces: z = rho (gamma lam z + M x). */
void etd_traced(Stream s, Table table, int64_t lanes, int64_t features,
                const double *restrict alpha, const double *restrict lam, double *restrict w,
                double *restrict z)
{
    double *restrict F = new_lanes(lanes);
    double *restrict decay_z = new_lanes(lanes);
    double *restrict scale_z = new_lanes(lanes);
    double *restrict w_x = new_lanes(lanes);
    double *restrict w_x_next = new_lanes(lanes);
    double *restrict by_z = new_lanes(lanes);
    double gamma = 0.0, rho_prev = 0.0;

    fill_zero(lanes, F);
    for (int64_t t = 0; t < s.steps; t++) {
        int32_t e = s.event[t];
        const double *fact = s.facts + e * s.columns;
        double reward = fact[REWARD], gamma_next = fact[GAMMA_NEXT], rho = fact[RHO];
        double factor = s.factor[t];
        double interest = fact[INTEREST];
        Row x = find_row(&table, s.row[e]), x_next = find_row(&table, s.row_next[e]);

        for (int64_t j = 0; j < lanes; j++) {
            F[j] = gamma * rho_prev * F[j] + interest;
            decay_z[j] = rho * gamma * lam[j];
            scale_z[j] = rho * (lam[j] * interest + (1 - lam[j]) * F[j]);
        }
        for (int64_t k = 0; k < features; k++)
            multiply(lanes, decay_z, z + k * lanes);
        write_row(x, lanes, scale_z, z);

        fill_zero(lanes, w_x);
        fill_zero(lanes, w_x_next);
        read_row(x, lanes, w, w_x);
        read_row(x_next, lanes, w, w_x_next);
        for (int64_t j = 0; j < lanes; j++) {
            double delta = reward + gamma_next * w_x_next[j] - w_x[j];
            by_z[j] = alpha[j] * factor * delta;
        }
        for (int64_t k = 0; k < features; k++)
            multiply_add(lanes, by_z, z + k * lanes, w + k * lanes);
        gamma = fact[GAMMA_CARRIED];
        rho_prev = rho;
    }
    free(F);
    free(decay_z);
    free(scale_z);
    free(w_x);
    free(w_x_next);
    free(by_z);
}

/* HTD without traces: z = rho x and y = x. */
void htd(Stream s, Table table, int64_t lanes, const double *restrict alpha,
         const double *restrict ratio, double *restrict w, double *restrict h)
{
    double *restrict w_x = new_lanes(lanes);
    double *restrict w_x_next = new_lanes(lanes);
    double *restrict h_x = new_lanes(lanes);
    double *restrict w_by_x = new_lanes(lanes);
    double *restrict w_by_x_next = new_lanes(lanes);
    double *restrict h_by_x = new_lanes(lanes);
    double *restrict h_by_x_next = new_lanes(lanes);

    for (int64_t t = 0; t < s.steps; t++) {
        int32_t e = s.event[t];
        const double *fact = s.facts + e * s.columns;
        double reward = fact[REWARD], gamma_next = fact[GAMMA_NEXT], rho = fact[RHO];
        double factor = s.factor[t];
        Row x = find_row(&table, s.row[e]), x_next = find_row(&table, s.row_next[e]);

        fill_zero(lanes, w_x);
        fill_zero(lanes, w_x_next);
        fill_zero(lanes, h_x);
        read_row_twice(x, lanes, w, h, w_x, h_x);
        read_row(x_next, lanes, w, w_x_next);
        for (int64_t j = 0; j < lanes; j++) {
            double a = alpha[j] * factor, beta = ratio[j] * a;
            double delta = reward + gamma_next * w_x_next[j] - w_x[j];
            double correction = a * (rho * h_x[j] - h_x[j]);
            w_by_x[j] = a * delta * rho + correction;
            w_by_x_next[j] = -gamma_next * correction;
            h_by_x[j] = beta * delta * rho - beta * h_x[j];
            h_by_x_next[j] = beta * gamma_next * h_x[j];
        }
        write_row_twice(x, lanes, w_by_x, h_by_x, w, h);
        write_row_twice(x_next, lanes, w_by_x_next, h_by_x_next, w, h);
    }
    free(w_x);
    free(w_x_next);
    free(h_x);
    free(w_by_x);
    free(w_by_x_next);
    free(h_by_x);
    free(h_by_x_next);
}

/* HTD with traces: z = rho (gamma lam z + x), y = gamma lam y + x. */
void htd_traced(Stream s, Table table, int64_t lanes, int64_t features,
                const double *restrict alpha, const double *restrict ratio,
                const double *restrict lam, double *restrict w, double *restrict h,
                double *restrict z, double *restrict y)
{
    double *restrict decay_z = new_lanes(lanes);
    double *restrict scale_z = new_lanes(lanes);
    double *restrict decay_y = new_lanes(lanes);
    double *restrict scale_y = new_lanes(lanes);
    double *restrict w_x = new_lanes(lanes);
    double *restrict w_x_next = new_lanes(lanes);
    double *restrict h_z = new_lanes(lanes);
    double *restrict h_y = new_lanes(lanes);
    double *restrict w_by_z = new_lanes(lanes);
    double *restrict h_by_z = new_lanes(lanes);
    double *restrict w_by_x = new_lanes(lanes);
    double *restrict w_by_x_next = new_lanes(lanes);
    double *restrict h_by_x = new_lanes(lanes);
    double *restrict h_by_x_next = new_lanes(lanes);
    double gamma = 0.0;

    for (int64_t t = 0; t < s.steps; t++) {
        int32_t e = s.event[t];
        const double *fact = s.facts + e * s.columns;
        double reward = fact[REWARD], gamma_next = fact[GAMMA_NEXT], rho = fact[RHO];
        double factor = s.factor[t];
        Row x = find_row(&table, s.row[e]), x_next = find_row(&table, s.row_next[e]);

        for (int64_t j = 0; j < lanes; j++) {
            decay_z[j] = rho * gamma * lam[j];
            scale_z[j] = rho;
            decay_y[j] = gamma * lam[j];
            scale_y[j] = 1.0;
        }
        for (int64_t k = 0; k < features; k++)
            multiply(lanes, decay_z, z + k * lanes);
        write_row(x, lanes, scale_z, z);
        for (int64_t k = 0; k < features; k++)
            multiply(lanes, decay_y, y + k * lanes);
        write_row(x, lanes, scale_y, y);

        fill_zero(lanes, w_x);
        fill_zero(lanes, w_x_next);
        read_row(x, lanes, w, w_x);
        read_row(x_next, lanes, w, w_x_next);
        fill_zero(lanes, h_z);
        fill_zero(lanes, h_y);
        for (int64_t k = 0; k < features; k++) {
            multiply_add(lanes, h + k * lanes, z + k * lanes, h_z);
            multiply_add(lanes, h + k * lanes, y + k * lanes, h_y);
        }
        for (int64_t j = 0; j < lanes; j++) {
            double a = alpha[j] * factor, beta = ratio[j] * a;
            double delta = reward + gamma_next * w_x_next[j] - w_x[j];
            double correction = a * (h_z[j] - h_y[j]);
            w_by_z[j] = a * delta;
            h_by_z[j] = beta * delta;
            w_by_x[j] = correction;
            w_by_x_next[j] = -gamma_next * correction;
            h_by_x[j] = -beta * h_y[j];
            h_by_x_next[j] = beta * gamma_next * h_y[j];
        }
        for (int64_t k = 0; k < features; k++) {
            multiply_add(lanes, w_by_z, z + k * lanes, w + k * lanes);
            multiply_add(lanes, h_by_z, z + k * lanes, h + k * lanes);
        }
        write_row_twice(x, lanes, w_by_x, h_by_x, w, h);
        write_row_twice(x_next, lanes, w_by_x_next, h_by_x_next, w, h);
        gamma = fact[GAMMA_CARRIED];
    }
    free(decay_z);
    free(scale_z);
    free(decay_y);
    free(scale_y);
    free(w_x);
    free(w_x_next);
    free(h_z);
    free(h_y);
    free(w_by_z);
    free(h_by_z);
    free(w_by_x);
    free(w_by_x_next);
    free(h_by_x);
    free(h_by_x_next);
}
