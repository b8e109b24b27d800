(* All releases: whoever sees any function of the groups knows no more. Presence, counterfeits, ranges and later quasi-identifiers are such functions, for
   they follow from the groups with their values and from what does not depend on values. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From proofs Require Import reader dealing cuts participants.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Releases.

Variables (n m : nat) (V L Z : finType).
Variable choose : output n V -> {set 'I_n} -> {ffun V -> nat} -> option ({set 'I_n} * {set 'I_n}).
Variable plan : output n V -> {set 'I_n} -> {ffun V -> nat} -> Z -> V -> nat -> L.
Hypothesis two : forall past A c A1 A2,
  choose past A c = Some (A1, A2) -> [/\ A1 :|: A2 = A, [disjoint A1 & A2], A1 != set0 & A2 != set0].
Hypothesis one : forall past, one_of_each (plan past).

Variables (R : realFieldType) (prior : table n V -> R) (cohorts : seq {set 'I_n}).
Hypothesis prior_ge0 : forall t, 0 <= prior t.
Hypothesis cohorts_apart : apart cohorts.
Hypothesis exchangeable : forall t r, all (stays r) cohorts -> prior (moved t r) = prior t.

Notation state := (state n V Z).
Notation groups_of := (published m choose plan cohorts).

(* What is published at all releases, as a function of the groups. *)
Variables (T : eqType) (see : output n V -> T) (seen : T) (J : {set 'I_n}) (known : table n V).
Definition sees := [pred s : state | (see (groups_of s) == seen) && [forall y in J, s.1 y == known y]].

Variables (x : 'I_n) (v : V) (k : nat).
Hypothesis x_unknown : x \notin J.
Hypothesis some_left : (0 < k)%N.

(* In every case the group of x has at least k people whose values are not known. *)
Hypothesis large : forall s, sees s -> exists leaf g, [/\ leaf \in groups_of s, g \in leaf.2, x \in g.1 & (k <= #|g.1 :\: J|)%N].

Lemma weight_ge0 (s : state) : 0 <= weight prior s.
Proof. by rewrite /weight divr_ge0 ?ler0n. Qed.

Let class (s : state) := [set s' : state | groups_of s' == groups_of s].

Lemma class_same s s' : (class s == class s') = (groups_of s == groups_of s').
Proof.
apply/eqP/eqP => [same|same]; last by apply/setP=> u; rewrite !inE same.
have : s \in class s' by rewrite -same inE eqxx.
by rewrite inE => /eqP.
Qed.

Theorem all_releases : 0 < mass (weight prior) sees -> posterior (weight prior) sees [pred s : state | s.1 x == v] <= k%:R^-1.
Proof.
move=> some; apply: (sees_less (see := class) weight_ge0 some) => o some_o.
have [s0 /andP[/= sees0 /eqP is_o]] : exists s, sees s && (class s == o).
  apply/existsP; apply: contraLR some_o; rewrite negb_exists => /forallP none.
  by rewrite /mass big_pred0 ?ltxx // => s; apply/negbTE/none.
pose K := knows m choose plan cohorts (groups_of s0) J known.
have same : [pred s | sees s && (class s == o)] =1 K.
  move=> s; rewrite /= -is_o class_same; case/andP: sees0 => /eqP <- _.
  by rewrite andbC andbA; case: (groups_of s =P groups_of s0) => //= ->; rewrite eqxx.
have same_mass E : mass (weight prior) [pred s | [pred s | sees s && (class s == o)] s && E s] = mass (weight prior) [pred s | K s && E s].
  by apply: eq_bigl => s /=; rewrite -[sees s && _]/([pred s | sees s && (class s == o)] s) same.
have -> : posterior (weight prior) [pred s | sees s && (class s == o)] [pred s : state | s.1 x == v]
    = posterior (weight prior) K [pred s : state | s.1 x == v].
  by rewrite /posterior same_mass; congr (_ / _); apply: eq_bigl.
have some_K : 0 < mass (weight prior) K by move: some_o; rewrite /mass (eq_bigl _ _ same).
have [leaf [g [leaf_in g_in x_in many]]] := large sees0.
have [/andP[v_in v_left]|no] := boolP ((v \in g.2) && (v \notin known @: (g.1 :&: J))).
  rewrite (theorem_B two one cohorts_apart exchangeable leaf_in g_in x_in x_unknown v_in v_left some_K).
  by rewrite lef_pinv ?posrE ?ltr0n ?ler_nat // (leq_trans some_left).
rewrite /posterior {1}/mass big_pred0 ?mul0r ?invr_ge0 ?ler0n // => s /=.
apply/negP=> /andP[/andP[/eqP is_g /forall_inP all_known] /eqP x_has].
have [_ values inj _] : [/\ g.1 \subset everybody cohorts, g.2 = s.1 @: g.1, {in g.1 &, injective s.1} & True].
  have := @release_sound n m V L Z choose plan two one [::] cohorts s.1 s.2 cohorts_apart.
  by rewrite -/(groups_of s) is_g => /(_ _ _ leaf_in g_in)[].
move: no; rewrite values -x_has imset_f //= negbK => /imsetP[y]; rewrite inE => /andP[yg yJ].
rewrite -(eqP (all_known y yJ)) => /inj same_person.
by move: x_unknown; rewrite same_person ?yJ.
Qed.

End Releases.
