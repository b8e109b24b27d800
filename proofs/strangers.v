(* Theorem A, in view of all releases: whoever sees any function of the groups of all cohorts gives nobody's value more than 1/l. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From proofs Require Import reader dealing cuts turns shifts close.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Strangers.

Variables (n w : nat) (V L K Z : finType) (O : eqType).
Notation l := w.+1.

(* As in shifts.v and close.v. *)
Variable choose : {set 'I_n} -> {ffun V -> nat} -> option ({set 'I_n} * {set 'I_n}).
Variable plan : {set 'I_n} -> {ffun V -> nat} -> Z -> V -> nat -> L.
Variable places : {set 'I_n} -> {ffun V -> nat} -> Z -> V -> nat -> {set V} * K.
Variable view : {set 'I_n} -> {ffun 'I_n -> option {set V}} -> {ffun {set V} -> {set {set 'I_n}}} -> Z -> O.
Hypothesis two : forall (A : {set 'I_n}) k A1 A2, choose A k = Some (A1, A2) -> [/\ A1 :|: A2 = A, [disjoint A1 & A2], A1 != set0 & A2 != set0].
Hypothesis plan_one : one_of_each plan.
Hypothesis places_one : one_of_each places.
Hypothesis balanced : forall A (c : {ffun V -> nat}) z v i, (i < c v)%N ->
  v \in (places A c z v i).1 /\ forall u, u \in (places A c z v i).1 -> exists2 j, (j < c u)%N & places A c z u j = places A c z v i.

Variables (R : realFieldType) (prior : table n V -> R) (cohorts : seq {set 'I_n}).
Hypothesis prior_ge0 : forall t, 0 <= prior t.
Hypothesis cohorts_apart : {in cohorts &, forall A B : {set 'I_n}, A != B -> [disjoint A & B]}.
Hypothesis exchangeable : forall (t : table n V) r, {in cohorts, forall A : {set 'I_n}, stays r A} -> prior (moved t r) = prior t.

Notation state := (state n w V Z).
Let groups_of : state -> seq (seq ({set 'I_n} * (failed n V + shown n V O))) := published choose plan (untried places view) cohorts.

(* What is published at all releases, as a function of the groups. *)
Variables (T : eqType) (see : seq (seq ({set 'I_n} * (failed n V + shown n V O))) -> T) (seen : T) (p : 'I_n) (v : V).
Definition sees := [pred st : state | (see (groups_of st) == seen) && possible st].

(* In every case p is in a leaf that failed, with rings of at least l people, or in an untried leaf, under a signature of at least l values. *)
Definition in_failed o := exists A (sh : failed n V) g,
  [/\ has (fun part : seq ({set 'I_n} * (failed n V + shown n V O)) => (A, inl sh) \in part) o,
      forall h, h \in sh.1.1 -> h.1 != set0 -> (l <= #|h.1|)%N, g \in sh.1.1 & p \in g.1].
Definition in_untried o := exists A (sh : shown n V O) (s : {set V}),
  [/\ has (fun part : seq ({set 'I_n} * (failed n V + shown n V O)) => (A, inr sh) \in part) o, sh.1 p = Some s & (l <= #|s|)%N].
Hypothesis covered : forall st, sees st -> in_failed (groups_of st) \/ in_untried (groups_of st).

Let class (st : state) := [set st' : state | groups_of st' == groups_of st].

Lemma class_same st st' : (class st == class st') = (groups_of st == groups_of st').
Proof.
apply/eqP/eqP => [same|same]; last by apply/setP=> u; rewrite !inE same.
have : st \in class st' by rewrite -same inE eqxx.
by rewrite inE => /eqP.
Qed.

Theorem theorem_A_all_releases : 0 < mass (weight prior) sees -> posterior (weight prior) sees [pred st : state | st.1 p == v] <= l%:R^-1.
Proof.
move=> some; apply: (sees_less (see := class) _ some) => [st|o some_o]; first exact: weight_ge0.
have [st0 /andP[/= sees0 /eqP is_o]] : exists st, sees st && (class st == o).
  apply/existsP; apply: contraLR some_o; rewrite negb_exists => /forallP none.
  by rewrite /mass big_pred0 ?ltxx // => st; apply/negbTE/none.
pose k := [pred st : state | (groups_of st == groups_of st0) && possible st].
have same : [pred st | sees st && (class st == o)] =1 k.
  move=> st; rewrite /= -is_o class_same; case/andP: sees0 => /eqP <- _.
  by rewrite andbC andbA; case: (groups_of st =P groups_of st0) => //= ->; rewrite eqxx.
have -> : posterior (weight prior) [pred st | sees st && (class st == o)] [pred st : state | st.1 p == v]
    = posterior (weight prior) k [pred st : state | st.1 p == v].
  rewrite /posterior /mass (eq_bigl _ _ same); congr (_ / _).
  by apply: eq_bigl => st; have := same st; rewrite /= => ->.
have some_k : 0 < mass (weight prior) k by move: some_o; rewrite /mass (eq_bigl _ _ same).
have [[A [sh [g [leaf_in large g_in p_in]]]]|[A [sh [s [leaf_in under many]]]]] := covered sees0.
  have still_untried := @untried_still n w V K Z O places view.
  exact: (theorem_A two plan_one still_untried prior_ge0 cohorts_apart exchangeable v leaf_in large g_in p_in some_k).
have [v_in|no] := boolP (v \in s).
  rewrite (theorem_A_untried two places_one balanced cohorts_apart exchangeable leaf_in under v_in some_k).
  by rewrite lef_pinv ?posrE ?ltr0n ?ler_nat // (leq_trans _ many).
rewrite /posterior {1}/mass big_pred0 ?mul0r ?invr_ge0 ?ler0n // => st /=.
apply/negP=> /andP[known /eqP has_v]; move: no; rewrite -has_v.
have [pA <-] := in_leaf leaf_in under known.
by rewrite (own_value balanced).
Qed.

End Strangers.
